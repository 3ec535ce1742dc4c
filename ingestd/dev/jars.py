"""Download Java archives into the user's cache folder, and verify their SHA-256 at each use.

Ivy, which is part of PySpark, downloads the archives, so only Java is required. Like Spark, it uses
the mirror in DEFAULT_ARTIFACT_REPOSITORY if that is set.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ingestd.errors import ConfigError, IngestdError

_FETCH_SECONDS = 600
_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_LOG_LINES = 15
_SETTINGS = """<ivysettings>
  <settings defaultResolver="repository"/>
  <resolvers><ibiblio name="repository" m2compatible="true" {root}usepoms="{poms}"/></resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="ingestd" module="jars"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


class JarError(IngestdError):
    """An archive cannot be downloaded or has a wrong SHA-256, or Java sources do not compile."""


def cache_folder() -> Path:
    """Return the folder of ingestd in the user's cache folder; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ingestd"


def java_command() -> str:
    """Return the path of `java` in JAVA_HOME or on the PATH.

    Raises ConfigError if there is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home) / "bin" / "java", os.X_OK):
        return str(Path(home) / "bin" / "java")
    command = shutil.which("java")
    if command is None:
        raise ConfigError("java is not found: install a Java 17 runtime or set JAVA_HOME")
    return command


def read_pins(path: Path) -> dict[str, str]:
    """Parse a file of lines `group:artifact:version SHA-256`; return the SHA-256 by coordinate.

    Empty lines, and text after `#`, are ignored.
    """
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return {line[0]: line[1] for line in lines if line}


def fetch(
    coordinates: Sequence[str],
    directory: Path,
    *,
    transitive: bool = False,
    pins: Mapping[str, str] | None = None,
) -> list[Path]:
    """Download archives if necessary, and return their paths, sorted by name.

    `coordinates` are Maven coordinates `group:artifact:version[:classifier]`. The archives are
    downloaded into `directory` unless all of them are there unchanged; several processes may call
    this at once. Every archive is verified by its SHA-256 in `pins` (by coordinate), or else by the
    SHA-256 of its first download. With `transitive`, their dependencies are included, which `pins`
    need not cover. Raises JarError if a download or a verification fails, or ConfigError if there
    is no Java to download with.
    """
    directory.mkdir(parents=True, exist_ok=True)
    expected = {_file_name(coordinate): digest for coordinate, digest in (pins or {}).items()}
    key = hashlib.sha256("\n".join([str(transitive), *sorted(coordinates)]).encode()).hexdigest()
    listing = directory / f"{key[:16]}.sha256"
    with _locked(directory / "lock"):
        noted = _read_listing(listing)
        if noted and all(_digest(directory / name) == noted[name] for name in noted):
            _compare(noted, expected)
        else:
            noted = _fetch_into(directory, coordinates, transitive, expected)
            _write_listing(listing, noted)
    return [directory / name for name in sorted(noted)]


def _fetch_into(
    directory: Path, coordinates: Sequence[str], transitive: bool, expected: Mapping[str, str]
) -> dict[str, str]:
    with tempfile.TemporaryDirectory(dir=directory, prefix="fetch-") as folder:
        fetched = _run_ivy(Path(folder), coordinates, transitive)
        digests = {path.name: _digest(path) or "" for path in fetched}
        missing = {_file_name(coordinate) for coordinate in coordinates} - digests.keys()
        if missing:
            raise JarError(f"not in the repository: {', '.join(sorted(missing))}")
        _compare(digests, expected)
        for path in fetched:
            path.replace(directory / path.name)
    return digests


def _run_ivy(folder: Path, coordinates: Sequence[str], transitive: bool) -> list[Path]:
    java = java_command()
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f"root={quoteattr(mirror)} " if mirror else ""
    settings, module = folder / "settings.xml", folder / "module.xml"
    settings.write_text(_SETTINGS.format(root=root, poms=str(transitive).lower()))
    dependencies = "".join(_dependency(coordinate, transitive) for coordinate in coordinates)
    module.write_text(_MODULE.format(dependencies=dependencies))
    jars = folder / "jars"
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-settings", str(settings), "-cache", str(folder / "ivy"), "-ivy", str(module)]
    command += ["-types", "jar", "bundle", "-retrieve", f"{jars}/{_PATTERN}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise JarError(f"fetching took more than {_FETCH_SECONDS} s: try again") from error
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LOG_LINES:])
        raise JarError(
            "cannot fetch Java archives: check the network, or name a mirror in "
            f"DEFAULT_ARTIFACT_REPOSITORY\n{tail}"
        )
    return sorted(jars.glob("*.jar"))


def _dependency(coordinate: str, transitive: bool) -> str:
    group, artifact, version, *classifier = coordinate.split(":")
    names = f"org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
    what = "".join(
        f'<artifact name={quoteattr(artifact)} type="jar" m:classifier={quoteattr(name)}/>'
        for name in classifier
    )
    flags = f'transitive="{str(transitive).lower()}" conf="default->default"'
    return f"<dependency {names} {flags}>{what}</dependency>"


def _file_name(coordinate: str) -> str:
    _, *name = coordinate.split(":")
    return f"{'-'.join(name)}.jar"


def _ivy_jar() -> Path:
    spark = importlib.util.find_spec("pyspark")
    for folder in spark.submodule_search_locations or () if spark else ():
        for jar in sorted(Path(folder).glob("jars/ivy-*.jar")):
            return jar
    raise JarError("this Python has no PySpark with its jars: install the package again")


def _compare(digests: Mapping[str, str], expected: Mapping[str, str]) -> None:
    wrong = sorted(name for name in digests if expected.get(name, digests[name]) != digests[name])
    if wrong:
        raise JarError(f"SHA-256 differs from the pinned one: {', '.join(wrong)}; nothing is used")


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _read_listing(path: Path) -> dict[str, str]:
    return read_pins(path) if path.exists() else {}


def _write_listing(path: Path, digests: Mapping[str, str]) -> None:
    text = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

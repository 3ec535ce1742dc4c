"""The archive of Spark's classes for the JVM (application class-data sharing, AppCDS).

Loading and verifying classes is half of the JVM's start. An archive is valid for one Java and one
set of jars, and its name is a digest of both. `ingestd.spark.startup.training` creates it once.
Without an archive, or with one that the JVM rejects, the start only takes longer.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = "INGESTD_CLASS_ARCHIVE"
OFF = "off"
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
# At the address it was made for it is shared memory; anywhere else it is copied and rewritten.
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_STALE_SECONDS = 1800.0
_OLD_SECONDS = 30 * 86_400.0
_LAYOUT = b"1\n"


def archive_folder() -> Path | None:
    """Where archives are kept: INGESTD_CLASS_ARCHIVE or the user's cache; None when it is `off`."""
    given = os.environ.get(FOLDER, "")
    if given.lower() == OFF:
        return None
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(cache) if cache else Path.home() / ".cache") / "ingestd" / "spark"
    except RuntimeError:  # a user without a home
        return None


def archive_file(java: str, jars: Sequence[str]) -> Path | None:
    """The archive for this Java and these jars, whether it is there or not."""
    folder = archive_folder()
    if folder is None:
        return None
    program = Path(java).resolve()
    digest = hashlib.sha256(_LAYOUT)
    for path in (program, program.parent.parent / "lib" / "server" / "libjvm.so", *map(Path, jars)):
        digest.update(_identity(path).encode())
    return folder / f"{digest.hexdigest()[:24]}.jsa"


def archive_flags(file: Path | None) -> tuple[str, ...]:
    """Flags that let a JVM use an archive; none if it is not there."""
    if file is None or not file.is_file():
        return ()
    return ("-Xshare:auto", f"-XX:SharedArchiveFile={file}", *_IN_PLACE, *_QUIET)


def recording_flags(file: Path) -> tuple[str, ...]:
    """Flags that let a JVM write its archive when it ends."""
    return (f"-XX:ArchiveClassesAtExit={file}", *_QUIET)


def make_in_background(file: Path | None, module: str) -> bool:
    """Begin to make an archive unless it is there or being made; True if begun.

    `module` is started with the least priority, as a process that this one does not wait for.
    """
    if file is None or file.exists() or not _take(file):
        return False
    try:
        subprocess.Popen(  # noqa: S603  (nothing of it comes from outside)
            [sys.executable, "-m", module],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_least_priority,
        )
    except OSError:
        return False
    return True


def record_into(file: Path) -> Path:
    """A name beside `file` for an archive in the making."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix="making-", suffix=".jsa")
    os.close(handle)
    Path(name).unlink()
    return Path(name)


def publish(made: Path, file: Path) -> bool:
    """Give a finished archive its name, and remove very old ones; False if it was not made."""
    _marker(file).unlink(missing_ok=True)
    if not made.is_file():
        return False
    made.replace(file)
    for other in file.parent.glob("*.jsa"):
        if time.time() - other.stat().st_mtime > _OLD_SECONDS:
            other.unlink(missing_ok=True)
    return True


def _take(file: Path) -> bool:
    """Whether this process may make the archive: a marker keeps others from doing it, too."""
    marker = _marker(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if marker.exists() and time.time() - marker.stat().st_mtime > _STALE_SECONDS:
            marker.unlink(missing_ok=True)
        marker.touch(exist_ok=False)
    except OSError:
        return False
    return True


def _marker(file: Path) -> Path:
    return file.with_suffix(".making")


def _identity(path: Path) -> str:
    """What changes when a file does; a JVM checks jars in the same way."""
    try:
        found = path.stat()
    except OSError:
        return f"{path}\n"
    # Whole seconds: layers of an image keep no more, and a JVM asks for no more.
    return f"{path} {found.st_size} {int(found.st_mtime)}\n"


def _least_priority() -> None:
    os.nice(19)

"""Writes the bill of materials: `python -m docs.sbom PYTHON FILE`, CycloneDX 1.6 as JSON.

cyclonedx-py describes what is installed for PYTHON, licences included. Added is what it does not
see: the hashes of the lock file, the jars in PySpark and the crates in the native extension, with
their licences. The same environment makes the same bytes.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docs.spark_jars import Jar, read_jars

ROOT = Path(__file__).resolve().parents[1]
_ENTRY = re.compile(
    r"(?P<name>[\w.-]+)(\[[^]]*\])?==(?P<version>[^\s;]+)(\s*;\s*(?P<marker>[^\\]+))?"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_UNDECLARED = {"hdfs-native": "Apache-2.0", "protobuf": "BSD-3-Clause"}
"""Packages whose metadata names no licence; these are those of their projects."""

Component = dict[str, Any]


def lock_entries(text: str) -> Iterator[str]:
    """The entries of a pip lock file, each on one line."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def python_components(text: str) -> Iterator[Component]:
    """The packages of a pip lock file; ValueError for an entry without a version or a hash."""
    for line in lock_entries(text):
        found, hashes = _ENTRY.match(line), _HASH.findall(line)
        if found is None or not hashes:
            raise ValueError(f"no version or no hash: {line[:80]}")
        yield _component("pypi", normal_name(found["name"]), found["version"], hashes)


def crate_components(text: str, licences: dict[str, str] | None = None) -> Iterator[Component]:
    """The crates of a Cargo lock file but the workspace's own, which have no checksum."""
    for package in tomllib.loads(text).get("package", ()):
        if "checksum" in package:
            name, version = package["name"], package["version"]
            licence = (licences or {}).get(f"{name} {version}", "")
            yield _component("cargo", name, version, [package["checksum"]], licence)


def shipped_crates(
    lock: str, manifest: str, licences: dict[str, str] | None = None
) -> list[Component]:
    """The crates that are built into the package of a manifest, without those of its tests."""
    needs: dict[str, list[str]] = {}
    for package in tomllib.loads(lock)["package"]:
        # A lock file refers to a crate by its name, or by name and version if it has several.
        names = (package["name"], f"{package['name']} {package['version']}")
        needs |= dict.fromkeys(names, package.get("dependencies", []))
    built: set[str] = set()
    waiting = list(tomllib.loads(manifest)["dependencies"])
    while waiting:
        crate = waiting.pop()
        if crate not in built:
            built.add(crate)
            waiting += needs[crate]
    return [
        component
        for component in crate_components(lock, licences)
        if not built.isdisjoint({component["name"], f"{component['name']} {component['version']}"})
    ]


def crate_licences() -> dict[str, str]:
    """Licences of the crates by name and version, as cargo knows them."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(  # noqa: S603  (constant command)
        command, cwd=ROOT / "native", capture_output=True, encoding="utf-8", check=True
    )
    return {
        f"{package['name']} {package['version']}": package["license"].replace("/", " OR ")
        for package in json.loads(done.stdout)["packages"]
    }


def jar_component(jar: Jar) -> Component:
    """A jar as a component."""
    return _component("maven", jar.artifact, jar.version, [jar.sha256], jar.licence, jar.group)


def environment_document(python: str) -> Component:
    """Return what cyclonedx-py knows of what is installed for an interpreter."""
    program = Path(sys.executable).parent / "cyclonedx-py"
    options = ["--output-reproducible", "--sv", "1.6", "--pyproject", str(ROOT / "pyproject.toml")]
    done = subprocess.run(  # noqa: S603  (a program of this environment)
        [str(program), "environment", *options, python],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    document: Component = json.loads(done.stdout)
    return document


def completed(document: Component, site_packages: Path) -> Component:
    """Add hashes, missing licences, jars and crates to the document of an environment."""
    hashes = {
        (python_component["name"], python_component["version"]): python_component[
            "externalReferences"
        ]
        for python_component in python_components(
            (ROOT / "requirements.lock").read_text(encoding="utf-8")
        )
    }
    for component in document["components"]:
        name = normal_name(component["name"])
        references = hashes.get((name, component["version"]), [])
        component["externalReferences"] = [*component.get("externalReferences", ()), *references]
        if not component.get("licenses") and name in _UNDECLARED:
            component["licenses"] = _licences(_UNDECLARED[name])
    lock = (ROOT / "native" / "Cargo.lock").read_text(encoding="utf-8")
    _contain(document, "pyspark", map(jar_component, read_jars(site_packages)))
    manifest = (ROOT / "native" / "Cargo.toml").read_text(encoding="utf-8")
    crates = shipped_crates(lock, manifest, crate_licences())
    _contain(document, "ingestd-native", crates)
    return document


def without_licence(document: Component) -> list[str]:
    """Return what has no licence in a document."""
    return [
        component["bom-ref"]
        for component in document["components"]
        if not component.get("licenses")
    ]


def normal_name(name: str) -> str:
    """Return a package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _contain(document: Component, owner: str, parts: Iterable[Component]) -> None:
    """Add parts to a document, as what an installed package depends on."""
    (package,) = (
        component for component in document["components"] if normal_name(component["name"]) == owner
    )
    edges = {edge["ref"]: edge for edge in document["dependencies"]}
    edge = edges[package["bom-ref"]]
    for part in parts:
        document["components"].append(part)
        document["dependencies"].append({"ref": part["bom-ref"]})
        edge.setdefault("dependsOn", []).append(part["bom-ref"])


def _site_packages(python: str) -> Path:
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    done = subprocess.run(  # noqa: S603  (an interpreter that the caller names)
        command, capture_output=True, encoding="utf-8", check=True
    )
    return Path(done.stdout.strip())


def _component(
    kind: str, name: str, version: str, hashes: list[str], licence: str = "", group: str = ""
) -> Component:
    """One part; several hashes are those of its files for several machines."""
    purl = f"pkg:{kind}/{f'{group}/' if group else ''}{name}@{version}"
    distribution = {
        "type": "distribution",
        "url": purl,
        "hashes": [{"alg": "SHA-256", "content": hash_} for hash_ in sorted(hashes)],
    }
    found: Component = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "externalReferences": [distribution],
    }
    return {
        **found,
        **({"group": group} if group else {}),
        **({"licenses": _licences(licence)} if licence else {}),
    }


def _licences(expression: str) -> list[Component]:
    return [{"expression": expression}]


def main(python: str, file: Path) -> None:
    """Write the document into a file; exit status 1 if a part has no licence."""
    document = completed(environment_document(python), _site_packages(python))
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    file.write_text(text, encoding="utf-8")
    if missing := without_licence(document):
        sys.exit(f"no licence of {', '.join(missing)} is known: add it to {__name__}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

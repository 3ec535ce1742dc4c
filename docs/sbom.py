"""Writes the bill of materials: `python -m docs.sbom FILE`, CycloneDX 1.5 as JSON.

Everything that a wheel of ingestd brings along: the locked Python packages, and the crates that the
native reader is built from, each with the hashes of the lock files. The same lock files make the
same bytes.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_ENTRY = re.compile(
    r"(?P<name>[\w.-]+)(\[[^]]*\])?==(?P<version>[^\s;]+)(\s*;\s*(?P<marker>[^\\]+))?"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_SPACE = uuid.UUID("6f3c7f7e-3f43-4a53-9a2c-0c1f5f5a1d11")

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
        name = re.sub(r"[-_.]+", "-", found["name"]).lower()
        yield _component("pypi", name, found["version"], hashes, (found["marker"] or "").strip())


def crate_components(text: str) -> Iterator[Component]:
    """The crates of a Cargo lock file but the workspace's own, which have no checksum."""
    for package in tomllib.loads(text).get("package", ()):
        if "checksum" in package:
            yield _component("cargo", package["name"], package["version"], [package["checksum"]])


def bill_of_materials() -> dict[str, Any]:
    """The document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components = [
        *python_components((ROOT / "requirements.lock").read_text(encoding="utf-8")),
        *crate_components((ROOT / "native" / "Cargo.lock").read_text(encoding="utf-8")),
    ]
    product = _component("pypi", project["name"], project["version"], [])
    content = json.dumps([product, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, content)}",
        "version": 1,
        "metadata": {"component": {**product, "type": "application"}},
        "components": components,
        "dependencies": [
            {
                "ref": product["bom-ref"],
                "dependsOn": sorted(component["bom-ref"] for component in components),
            }
        ],
    }


def _component(
    kind: str, name: str, version: str, hashes: list[str], marker: str = ""
) -> Component:
    """One part; several hashes are those of its files for several machines."""
    purl = f"pkg:{kind}/{name}@{version}"
    found: Component = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    if hashes:
        found["externalReferences"] = [
            {
                "type": "distribution",
                "url": purl,
                "hashes": [{"alg": "SHA-256", "content": hash_} for hash_ in sorted(hashes)],
            }
        ]
    if marker:
        found["bom-ref"] = f"{purl}#{uuid.uuid5(_SPACE, marker)}"
        found["properties"] = [{"name": "ingestd:needed-where", "value": marker}]
    return found


def main(file: Path) -> None:
    """Write the document into a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bill_of_materials(), indent=2, sort_keys=True) + "\n"
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

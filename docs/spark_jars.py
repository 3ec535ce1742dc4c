"""The jars that PySpark brings along, with group, version and licence.

A jar seldom states its licence. PySpark's own licence file lists the jars of other projects, by
group and artifact, under the name of their licence.
"""

import hashlib
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ENTRY = re.compile(r"(?P<group>[\w.-]+):(?P<artifact>[\w.-]+)(:jar)?( https?://\S+)?")
_NOTE = re.compile(r"META-INF/maven/(?P<group>[^/]+)/(?P<artifact>[^/]+)/pom\.properties")
_LICENCES = {
    "License Version 2.0": "Apache-2.0",
    "BSD 0-Clause": "0BSD",
    "BSD 2-Clause": "BSD-2-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "MIT License": "MIT",
    "Common Development and Distribution License (CDDL) 1.0": "CDDL-1.0",
    "Common Development and Distribution License (CDDL) 1.1": "CDDL-1.1",
    "Eclipse Distribution License (EDL) 1.0": "BSD-3-Clause",
    "Eclipse Public License (EPL) 2.0": "EPL-2.0",
    "Unicode/ICU License": "ICU",
}
_UNLISTED = {
    "failureaccess": ("com.google.guava", "Apache-2.0"),
    "log4j-1.2-api": ("org.apache.logging.log4j", "Apache-2.0"),
    "vertx-uri-template": ("io.vertx", "Apache-2.0 OR EPL-2.0"),
}
"""Jars that PySpark's licence file lacks, by what their projects publish."""

Listed = dict[str, dict[str, str]]
"""Licences by artifact, then by group."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar: its coordinates, the SPDX identifier or expression of its licence, its digest."""

    group: str
    artifact: str
    version: str
    licence: str
    sha256: str


def listed_licences(text: str) -> Listed:
    """Return the licences that PySpark's licence file gives to groups and artifacts."""
    found: Listed = defaultdict(dict)
    heading = ""
    for line in (line.strip() for line in text.splitlines()):
        entry = _ENTRY.fullmatch(line)
        if entry and heading:
            found[entry["artifact"]][entry["group"]] = _LICENCES[heading]
        elif line.rstrip(":") in _LICENCES:
            heading = line.rstrip(":")
    return found


def read_jars(site_packages: Path) -> Iterator[Jar]:
    """Read the jars of an installed PySpark; ValueError for a jar without a known licence."""
    (licence_file,) = site_packages.glob("pyspark-*.dist-info/licenses/LICENSE")
    listed = listed_licences(licence_file.read_text(encoding="utf-8"))
    for path in sorted((site_packages / "pyspark" / "jars").glob("*.jar")):
        artifact, version = _artifact(path, listed)
        group, licence = _origin(path, artifact, listed)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        yield Jar(group, artifact, version, licence, digest)


def _artifact(path: Path, listed: Listed) -> tuple[str, str]:
    """Artifact and version of a file: `log4j-1.2-api-2.25.4` splits where an artifact is known."""
    for hyphen in re.finditer(r"-(?=\d)", path.stem):
        artifact = path.stem[: hyphen.start()]
        if artifact in listed or artifact in _UNLISTED or artifact.startswith("spark-"):
            return artifact, path.stem[hyphen.end() :]
    raise ValueError(f"no licence of {path.name} is known: add it to {__name__}")


def _origin(path: Path, artifact: str, listed: Listed) -> tuple[str, str]:
    """Group and licence; of two groups with one artifact, the one that the jar itself states."""
    if artifact.startswith("spark-"):
        return "org.apache.spark", "Apache-2.0"
    groups = listed.get(artifact, {})
    if len(groups) > 1:
        with zipfile.ZipFile(path) as archive:
            notes = [note for name in archive.namelist() if (note := _NOTE.fullmatch(name))]
        groups = {n["group"]: groups[n["group"]] for n in notes if n["group"] in groups}
    return next(iter(groups.items()), None) or _UNLISTED[artifact]

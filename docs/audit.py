"""Compares what is locked with advisories in a folder: `python -m docs.audit FOLDER...`.

For a machine without a network, or where nobody answers `make audit`. A folder is a copy of any
databases that publish documents of the OSV schema, as JSON or YAML, in any tree. Exit code 0: each
ecosystem has advisories that are not old, and none concerns what is locked; 1: some do, and are
printed; 3: none is known to, but an ecosystem has no advisories, or old ones alone, or some cannot
be compared: that is no pass.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from docs.advisories import (
    CRATES,
    MAVEN,
    PYPI,
    Document,
    Finding,
    IncomparableError,
    Part,
    concerned,
    is_advisory,
    judge,
    normalised,
)
from docs.locked_parts import UNKNOWN_GROUP, jar_parts, locked_parts

ECOSYSTEMS = (PYPI, CRATES, MAVEN)
OLD_DAYS = 45
"""Advisories whose newest is older than this say nothing of today."""
_Place = tuple[str, str]


@dataclass
class Database:
    """Advisories by ecosystem and name, the day of the newest of each, and files unread."""

    by_name: dict[_Place, list[tuple[Document, Document]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    newest: dict[str, date] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unread: list[str] = field(default_factory=list)

    def add(self, document: Document) -> None:
        """Take a document of the OSV schema."""
        for ecosystem, name, affected in concerned(document):
            self.by_name[ecosystem, name].append((document, affected))
            if ecosystem == MAVEN:
                unknown = f"{UNKNOWN_GROUP}:{name.partition(':')[2]}"
                self.by_name[ecosystem, unknown].append((document, affected))
        day = _day(document["modified"])
        for ecosystem in {one["package"]["ecosystem"] for one in _packaged(document)}:
            self.newest[ecosystem] = max(day, self.newest.get(ecosystem, day))
            self.known[ecosystem] += 1


@dataclass(frozen=True)
class Verdict:
    """What is known: findings, what could not be compared, and what nothing is known of."""

    findings: list[Finding]
    unclear: list[str]

    @property
    def code(self) -> int:
        """The exit code."""
        return 1 if self.findings else 3 if self.unclear else 0


def read_database(folders: Iterable[Path]) -> Database:
    """All documents below some folders; what is no document of the schema is passed over."""
    database = Database()
    for path in _files(folders):
        try:
            text = path.read_text(encoding="utf-8")
            read: Callable[[str], Any] = json.loads if path.suffix == ".json" else _yaml
            document = read(text)
        except (ValueError, yaml.YAMLError) as error:
            database.unread.append(f"{path} cannot be read: {str(error).splitlines()[0]}")
            continue
        if is_advisory(document):
            database.add(document)
    return database


def audit(parts: Sequence[Part], database: Database, today: date) -> Verdict:
    """Compare parts with a database."""
    findings: dict[tuple[Part, str], Finding] = {}
    unclear = list(database.unread)
    for part in parts:
        place = part.ecosystem, normalised(part.ecosystem, part.name)
        for document, affected in database.by_name.get(place, ()):
            try:
                found = judge(part, document, affected)
            except IncomparableError as error:
                unclear.append(f"{part.name} {part.version}, {document['id']}: {error}")
                continue
            if found:
                findings.setdefault((part, found.advisory), found)
    return Verdict(list(findings.values()), [*unclear, *_outdated(database, today)])


def report(parts: Sequence[Part], database: Database, verdict: Verdict) -> Iterator[str]:
    """Lines for people."""
    for ecosystem in ECOSYSTEMS:
        many = sum(part.ecosystem == ecosystem for part in parts)
        newest = database.newest.get(ecosystem)
        told = f"the newest of {newest}" if newest else "none"
        yield f"{ecosystem}: {many} parts, {database.known[ecosystem]} advisories, {told}"
    yield from map(str, verdict.findings)
    yield from (f"not known: {one}" for one in verdict.unclear)
    yield {
        0: "no known vulnerability",
        1: f"{len(verdict.findings)} known vulnerabilities",
        3: "NOT AUDITED in whole: none is found, but see what is not known",
    }[verdict.code]


def _outdated(database: Database, today: date) -> Iterator[str]:
    for ecosystem in ECOSYSTEMS:
        newest = database.newest.get(ecosystem)
        if newest is None:
            yield f"no advisories of {ecosystem}"
        elif (today - newest).days > OLD_DAYS:
            since = f"{newest:%Y-%m}: its newest advisory is of {newest}"
            yield f"anything of {ecosystem} since {since}"


def _packaged(document: Document) -> list[Mapping[str, Any]]:
    return [one for one in document["affected"] or () if one.get("package")]


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            hidden = any(one.startswith(".") for one in path.relative_to(folder).parts)
            if path.suffix in {".json", ".yaml", ".yml"} and not hidden and path.is_file():
                yield path


def _yaml(text: str) -> object:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  (both are safe)


def _day(modified: object) -> date:
    if isinstance(modified, datetime):
        return modified.date()
    return modified if isinstance(modified, date) else date.fromisoformat(str(modified)[:10])


def spark_jars() -> Path:
    """The folder of the jars that the installed PySpark brings."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ValueError("PySpark is not installed here: run `make setup`")
    return Path(found.origin).parent / "jars"


def main(folders: Sequence[str]) -> int:
    """Print what is known, and the exit code."""
    missing = [folder for folder in folders if not Path(folder).is_dir()]
    if missing or not folders:
        sys.stderr.write(f"no folder of advisories: {' '.join(missing) or 'name one'}\n")
        return 3
    parts = [*locked_parts(), *jar_parts(spark_jars())]
    database = read_database(Path(folder) for folder in folders)
    verdict = audit(parts, database, datetime.now(UTC).date())
    sys.stdout.writelines(f"{line}\n" for line in report(parts, database, verdict))
    return verdict.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

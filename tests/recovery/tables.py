"""Tables of the model: snapshots with rows and records, and what is kept beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.recovery.broker import Key, Position

DEAD_LETTERS = "dead_letters"
OTHERS = "java"
EVERY_PARTITION = -1

Vector = Mapping[Key, Position]


@dataclass(frozen=True, slots=True)
class Progress:
    """The record of a pipeline in a snapshot.

    `token` is its identity, which goes along when it is copied; `sequence` orders the records of
    a pipeline. `end` is the whole vector of what the table covers, `finished` what is finished
    for tables that are yet to be, `fed` the ids of topics that ever brought the table a row,
    `names` the tables that have a record, `sources` those that were founded, `origin` where a
    partition was begun if that is not offset 0, `topics` the names of topic ids, `retired` the
    ids of topics whose end a dead letter reported, `routing` what the batch was routed by.
    `overwritten` is set where the record was copied onto an overwrite of others.
    """

    token: int
    sequence: int
    end: Vector
    finished: Vector
    fed: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    origin: Vector = field(default_factory=dict)
    topics: Mapping[int, str] = field(default_factory=dict)
    retired: frozenset[int] = frozenset()
    routing: object = None
    overwritten: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: `token` is unique, `id` is not after a rollback; `records` by pipeline."""

    token: int
    id: int
    user: str
    rows: tuple[int, ...]
    records: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its chain of snapshots, the pipelines that its schema names, a tag and a branch."""

    snapshots: tuple[Snapshot, ...] = ()
    marks: frozenset[str] = frozenset()
    tag: Snapshot | None = None
    branch: tuple[Snapshot, ...] | None = None

    @property
    def latest(self) -> Snapshot | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def rows(self) -> tuple[int, ...]:
        """Numbers of the events that the table holds now."""
        return self.snapshots[-1].rows if self.snapshots else ()

    def up_to(self, count: int) -> "Table":
        """The table rolled back to its first snapshots; tags above them go, too."""
        kept = self.snapshots[:count]
        tag = self.tag if self.tag is not None and self.tag.id <= kept[-1].id else None
        return replace(self, snapshots=kept, tag=tag)


@dataclass(frozen=True, slots=True)
class Claims:
    """The file beside the tables: table `name` lacks nothing below `finished` if its newest
    record is the one with the token `whole[name]`.
    """

    sequence: int
    finished: Vector
    whole: Mapping[str, int]
    names: frozenset[str]
    sources: frozenset[str]
    origin: Vector
    topics: Mapping[int, str]
    retired: frozenset[int]
    damaged: bool = False


class Letter(NamedTuple):
    """A dead letter on offsets from `first` to `until` (None: unknown) that a table lacks.

    Without a table it means each one that is not among `known`; with EVERY_PARTITION all of a
    topic that is gone. With an `epoch` it means what the log had under later epochs, too.
    """

    table: str | None
    key: Key
    first: int
    until: int | None
    known: frozenset[str] = frozenset()
    epoch: int | None = None

    def names(self, table: str, key: Key, offset: int, epoch: int) -> bool:
        """Whether the letter names an offset of a table, where an event of an epoch is."""
        if key[0] != self.key[0] or self.key[1] not in (key[1], EVERY_PARTITION):
            return False
        if offset < self.first and (self.epoch is None or epoch <= self.epoch):
            return False
        if self.until is not None and offset >= self.until:
            return False
        return table == self.table or (self.table is None and table not in self.known)


@dataclass(slots=True)
class Warehouse:
    """Tables and files of a warehouse.

    What only the judge reads: `letters` ever written, `begun` (where each partition was begun when
    it was first seen), `earliest` (the same, of all times that it was forgotten and begun again),
    `founded` (sources that were), and `settled` (the tables of each event that
    a batch finished, by the routings of then).
    """

    tables: dict[str, Table] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    dead_letters: list[Letter] = field(default_factory=list)
    begun: dict[Key, int] = field(default_factory=dict)
    earliest: dict[Key, int] = field(default_factory=dict)
    founded: set[str] = field(default_factory=set)
    settled: dict[int, frozenset[str | None]] = field(default_factory=dict)

    def judged_like(self, other: "Warehouse") -> None:
        """Take over what was noted of a warehouse whose tables or files are put here."""
        for key, offset in other.earliest.items():
            self.earliest[key] = min(offset, self.earliest.get(key, offset))
        self.dead_letters.extend(other.dead_letters)
        for uid, tables in other.settled.items():
            self.settled[uid] = self.settled.get(uid, frozenset()) | tables

    def copy(self) -> "Warehouse":
        """A copy beside this one."""
        return Warehouse(
            dict(self.tables),
            dict(self.files),
            list(self.dead_letters),
            dict(self.begun),
            dict(self.earliest),
            set(self.founded),
            dict(self.settled),
        )


def newest_records(table: Table, off: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The records of the newest snapshot that has any; every commit of ingestd carries them on.

    Records from below an overwrite of others are marked: the rows that they speak of may be gone.
    """
    found: dict[str, Any] = {}
    overwritten = False
    for snapshot in reversed(table.snapshots):
        for pipeline, record in snapshot.records.items():
            marked = overwritten and isinstance(record, Progress)
            found.setdefault(pipeline, replace(record, overwritten=True) if marked else record)
        if found and "one-snapshot" not in off:
            break
        overwritten = overwritten or snapshot.overwrite
    return found

"""Discoveries of decode tasks: columns and types that the tables lack, merged over tasks.

`schema_evolution` derives schema changes from them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ingestd.cdc.base import SourceTable
from ingestd.ingest.schemas.column_history import ProvenChange
from ingestd.ingest.settings.context import Feed
from ingestd.ingest.values.counts import TopicPartition
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import TableSchema


@dataclass(frozen=True, slots=True)
class Discovery:
    """Columns of a source table that its target table lacks, or has with a narrower type.

    For a table that does not exist (`fresh`): all columns seen, and `primary_keys` from the message
    key. `topic`, `partition` and `offset` are those of the first such record. `proven` are renames
    and drops that the table is to apply.
    """

    table: str
    feed: Feed
    columns: Mapping[str, DataType]
    primary_keys: tuple[str, ...]
    topic: str
    partition: int
    offset: int
    fresh: bool = False
    proven: tuple[ProvenChange, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether it only reports columns of a table that does not exist."""
        return self.fresh and bool(self.proven) and not self.columns

    @property
    def order(self) -> tuple[str, int, int]:
        """Sort key: the position of the first record."""
        return self.topic, self.partition, self.offset

    def __str__(self) -> str:
        return f"{self.feed} (topic {self.topic}, partition {self.partition}, offset {self.offset})"


@dataclass(frozen=True, slots=True)
class TableTruncate:
    """A truncate that has not been applied to the table, and its record.

    Older rows have a smaller source position than its own, which is None if unknown.
    """

    table: str
    feed: Feed
    position: int | None
    topic: str
    partition: int
    offset: int

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Source, topic, partition and offset of the record."""
        return self.feed.source, self.topic, self.partition, self.offset


@dataclass(frozen=True, slots=True)
class CachedChunk:
    """A decoded chunk, cached under a name until the table of all its rows has been created.

    It covers the offsets from `start` up to `until`; `records`, `size` (bytes of keys and values)
    and `control` are its counts, `last` is the checksum of its last record. `table` is the
    target's identifier.
    """

    name: str
    where: TopicPartition
    start: int
    until: int
    records: int
    size: int
    control: int
    last: int
    table: str
    source_table: SourceTable
    types: Mapping[str, DataType]
    primary_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DiscoveryLog:
    """Collects and merges the discoveries of a task."""

    _found: dict[tuple[str, Feed], Discovery] = field(default_factory=dict)
    _unmerged: list[Discovery] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is no discovery."""
        return not self._unmerged and all(one.is_idle for one in self._found.values())

    def add(self, found: Discovery) -> None:
        """Add a discovery; types that cannot be merged stay separate, for the driver to refuse."""
        key = (found.table, found.feed)
        known = self._found.get(key)
        if known is None:
            self._found[key] = found
            return
        merged = merge_columns(known.columns, found.columns, fresh=found.fresh)
        if merged is None:
            self._unmerged.append(found)
            return
        keys = known.primary_keys or found.primary_keys
        proven = tuple(sorted({*known.proven, *found.proven}))
        self._found[key] = replace(known, columns=merged, primary_keys=keys, proven=proven)

    def findings(self) -> tuple[Discovery, ...]:
        """Return all discoveries, sorted by their first record."""
        return in_order([*self._found.values(), *self._unmerged])


def in_order(discoveries: Iterable[Discovery]) -> tuple[Discovery, ...]:
    """Sort discoveries by their first record."""
    return tuple(sorted(discoveries, key=lambda found: found.order))


def merge_columns(
    known: Mapping[str, DataType], found: Mapping[str, DataType], *, fresh: bool
) -> dict[str, DataType] | None:
    """Merge columns, those of `known` first; None if two types cannot be merged.

    `fresh` as in `merge_types`.
    """
    merged = dict(known)
    for name, data_type in found.items():
        if name not in merged:
            merged[name] = data_type
            continue
        together = merge_types(merged[name], data_type, fresh=fresh)
        if together is None:
            return None
        merged[name] = together
    return merged


def columns_beyond(schema: TableSchema, found: Mapping[str, DataType]) -> dict[str, DataType]:
    """Return the found columns that the table lacks, or has with a narrower type."""
    current = {column.name: column.type for column in schema.fields}
    beyond: dict[str, DataType] = {}
    for name, data_type in found.items():
        known = current.get(name)
        if known is None or merge_types(known, data_type) != known.as_nullable():
            beyond[name] = data_type
    return beyond

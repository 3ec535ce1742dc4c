"""Discoveries of decode tasks, which the driver handles before it runs the batch again.

There are two kinds: columns and types that the tables lack, from which `schema_evolution` derives
schema changes, and truncates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ingestd.cdc.base import NO_COMMENTS, Comments
from ingestd.ingest.schemas.column_history import ProvenChange
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.paimon.spec.data_types import DataType


@dataclass(frozen=True, slots=True)
class Discovery:
    """Columns of a source table that its target table lacks, or has with a narrower type.

    If the target table does not exist (`fresh`), `columns` are all columns of the messages, and
    `primary_keys` are the columns of the message key. `topic`, `partition` and `offset` identify
    the first record with these columns. `proven` are renames and drops found in DDL that the table
    has to apply, and `comments` are comments of the source that it may take. If a
    discovery has none of these, the batch only runs again, with the existing table in its context.
    """

    table: str
    source_table: QualifiedSourceTable
    columns: Mapping[str, DataType]
    primary_keys: tuple[str, ...]
    topic: str
    partition: int
    offset: int
    fresh: bool = False
    proven: tuple[ProvenChange, ...] = ()
    comments: Comments = NO_COMMENTS

    @property
    def is_idle(self) -> bool:
        """Whether the batch need not run again because of this discovery.

        That is so if the discovery contains only comments, or, for a table that does not exist,
        only comments, renames and drops.
        """
        if self.columns or (self.proven and not self.fresh):
            return False
        return bool(self.proven or self.comments)

    @property
    def order(self) -> tuple[str, int, int]:
        """Sort key: topic, partition and offset of the first record."""
        return self.topic, self.partition, self.offset

    def __str__(self) -> str:
        coordinates = f"topic {self.topic}, partition {self.partition}, offset {self.offset}"
        return f"{self.source_table} ({coordinates})"


@dataclass(frozen=True, slots=True)
class TableTruncate:
    """A truncate that a table has not applied yet, and the record that contains it.

    `point` is None if the truncate has no position.
    """

    table: str
    source_table: QualifiedSourceTable
    point: SourcePoint | None
    topic: str
    partition: int
    offset: int

    @property
    def coordinates(self) -> tuple[str, str, int, int]:
        """The source, topic, partition and offset of the record."""
        return self.source_table.source, self.topic, self.partition, self.offset


def in_order(discoveries: Iterable[Discovery]) -> tuple[Discovery, ...]:
    """Sort discoveries by their first record."""
    return tuple(sorted(discoveries, key=lambda discovery: discovery.order))

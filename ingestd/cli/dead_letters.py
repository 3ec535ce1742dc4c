"""Selects dead letters for commands."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from ingestd.cli.groups import now_ms
from ingestd.cli.tables import open_catalog
from ingestd.config.units import parse_duration
from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.replays import PLACE, Replays, check_dead_letters, read_replays
from ingestd.ingest.settings.pipeline_settings import DEAD_LETTER_TABLE
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader

Letters: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="DB[.TABLE]", help="Database, and the table if it has another name."),
]
OfSource: TypeAlias = Annotated[
    str | None, typer.Option("--source", help="Only letters of this source.")
]
OfTopic: TypeAlias = Annotated[
    str | None, typer.Option("--topic", help="Only letters of this topic.")
]
OfStage: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--stage", help="Only this stage: fetch, decode, route, key, cast, schema or merge."
    ),
]
OfReason: TypeAlias = Annotated[
    str | None, typer.Option("--reason", help="Only this reason, as `dlq list` shows it.")
]
OlderThan: TypeAlias = Annotated[
    str | None,
    typer.Option("--older-than", help="Only records older than this, as 30d or 12h."),
]

FILTER_COLUMNS = (*PLACE, "timestamp", "stage", "reason")
_MILLIS = 1000


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Selects dead letters; a field that is None selects all.

    `before_ms` is compared with the timestamp of the record; a letter without one is left out.
    """

    source: str | None = None
    topic: str | None = None
    stage: str | None = None
    reason: str | None = None
    before_ms: int | None = None

    @property
    def takes_all(self) -> bool:
        """Return whether it selects every letter."""
        return self == DeadLetterFilter()

    def marks(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Return the mask `(n,)` of selected rows, which have the columns of `FILTER_COLUMNS`."""
        meant = np.ones(rows.num_rows, np.bool_)
        for name in ("source", "topic", "stage", "reason"):
            expected = getattr(self, name)
            if expected is not None:
                meant &= np.array(
                    [value == expected for value in rows.column(name).to_pylist()], np.bool_
                )
        if self.before_ms is not None:
            times = map(millis_of, rows.column("timestamp").to_pylist())
            old = [time is not None and time < self.before_ms for time in times]
            meant &= np.array(old, np.bool_)
        return meant


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A table of dead letters, and which of them were replayed."""

    table: FileStoreTable
    replays: Replays

    def kept(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns that the table has; an older version created it with fewer."""
        return tuple(name for name in columns if name in self.table.schema.field_names)

    def rows(self, letter_filter: DeadLetterFilter, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the selected letters in parts, with these columns and `FILTER_COLUMNS`."""
        snapshot = latest_snapshot(self.table.io, self.table.paths)
        if snapshot is None:
            return
        names = tuple(dict.fromkeys((*FILTER_COLUMNS, *columns)))
        for row in TableReader(self.table, names).rows(snapshot):
            yield row.filter(pa.array(letter_filter.marks(row)))


def open_dead_letters(warehouse: str, name: str) -> DeadLetters:
    """Open the dead letters of a database, or a table of them. Raises ConfigError."""
    identifier = Identifier.parse(name if "." in name else f"{name}.{DEAD_LETTER_TABLE}")
    catalog = open_catalog(warehouse)
    table = catalog.get_table(identifier)
    check_dead_letters(table)
    return DeadLetters(table, read_replays(catalog, identifier))


def older_than(text: str | None) -> int | None:
    """Return the time before now by this duration, in milliseconds since 1970."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--older-than '{text}': {error}") from error
    return now_ms() - int(seconds * _MILLIS)


def millis_of(value: Any) -> int | None:  # noqa: ANN401  (a cell)
    """Return a timestamp of a letter in milliseconds since 1970."""
    return None if value is None else round(value.timestamp() * _MILLIS)

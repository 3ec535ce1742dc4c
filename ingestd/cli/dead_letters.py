"""Options and filters that select dead letters for commands."""

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
from ingestd.ingest.dead_letters.replays import (
    COORDINATES,
    Replays,
    check_dead_letters,
    read_replays,
)
from ingestd.ingest.settings.pipeline_settings import DEAD_LETTER_TABLE
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader

DeadLetterTableName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DB[.TABLE]", help="The database, or a dead-letter table of another name."
    ),
]
OfSource: TypeAlias = Annotated[
    str | None, typer.Option("--source", help="Only dead letters of this source.")
]
OfTopic: TypeAlias = Annotated[
    str | None, typer.Option("--topic", help="Only dead letters of this topic.")
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

FILTER_COLUMNS = (*COORDINATES, "timestamp", "stage", "reason")
_MILLIS = 1000


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """A selection of dead letters: those that match every field that is not None.

    `before_ms`, in milliseconds since 1970, selects records with an older timestamp, and none
    without a timestamp.
    """

    source: str | None = None
    topic: str | None = None
    stage: str | None = None
    reason: str | None = None
    before_ms: int | None = None

    @property
    def takes_all(self) -> bool:
        """Return whether every dead letter is selected."""
        return self == DeadLetterFilter()

    def marks(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Return the mask `(n,)` of selected rows; `rows` needs the columns `FILTER_COLUMNS`."""
        selected = np.ones(rows.num_rows, np.bool_)
        for name in ("source", "topic", "stage", "reason"):
            expected = getattr(self, name)
            if expected is not None:
                selected &= np.array(
                    [value == expected for value in rows.column(name).to_pylist()], np.bool_
                )
        if self.before_ms is not None:
            times = map(millis_of, rows.column("timestamp").to_pylist())
            old = [time is not None and time < self.before_ms for time in times]
            selected &= np.array(old, np.bool_)
        return selected


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A table of dead letters, and which of them were replayed."""

    table: FileStoreTable
    replays: Replays

    def existing_columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of `columns` that the table has: older versions created it with fewer."""
        return tuple(name for name in columns if name in self.table.schema.field_names)

    def rows(self, selection: DeadLetterFilter, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the selected dead letters in parts, with `columns` and `FILTER_COLUMNS`."""
        snapshot = latest_snapshot(self.table.io, self.table.paths)
        if snapshot is None:
            return
        names = tuple(dict.fromkeys((*FILTER_COLUMNS, *columns)))
        for rows in TableReader(self.table, names).rows(snapshot):
            yield rows.filter(pa.array(selection.marks(rows)))


def open_dead_letters(warehouse: str, name: str) -> DeadLetters:
    """Open a dead-letter table, named as DB.TABLE, or as DB if it has the default name.

    Raises ConfigError if the table does not exist or is not a dead-letter table.
    """
    identifier = Identifier.parse(name if "." in name else f"{name}.{DEAD_LETTER_TABLE}")
    catalog = open_catalog(warehouse)
    table = catalog.get_table(identifier)
    check_dead_letters(table)
    return DeadLetters(table, read_replays(catalog, identifier))


def older_than(text: str | None) -> int | None:
    """Subtract a duration such as `30d` from the current time; return milliseconds since 1970.

    Returns None for None. Raises ConfigError for an invalid duration.
    """
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--older-than '{text}': {error}") from error
    return now_ms() - int(seconds * _MILLIS)


def millis_of(value: Any) -> int | None:  # noqa: ANN401  (a cell)
    """Convert a timestamp of a dead letter to milliseconds since 1970; None stays None."""
    return None if value is None else round(value.timestamp() * _MILLIS)

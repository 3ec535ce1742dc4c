"""Options and filters that select dead letters for commands."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import typer

from ingestd.cli.groups import now_ms
from ingestd.cli.table_arguments import open_catalog
from ingestd.config.units import parse_duration
from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.replays import (
    COORDINATES,
    Replays,
    check_dead_letters,
    read_replays,
)
from ingestd.ingest.settings.error_policy import STAGES
from ingestd.ingest.settings.pipeline_settings import DEAD_LETTER_TABLE
from ingestd.ingest.settings.rejection import GAP_STAGE
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
OfTable: TypeAlias = Annotated[
    str | None, typer.Option("--table", help="Only dead letters of this table, DATABASE.TABLE.")
]
OfPartition: TypeAlias = Annotated[
    int | None, typer.Option("--partition", help="Only this partition of --topic.")
]
OfOffset: TypeAlias = Annotated[
    int | None, typer.Option("--offset", help="Only the record at this offset of --partition.")
]
NewerThan: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--newer-than",
        help="Only records newer than this, as 30m or 2h; none about losses, which have no time.",
    ),
]
OlderThan: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        help="Only records older than this, as 30d or 12h; none about losses, which have no time.",
    ),
]

FILTER_COLUMNS = (*COORDINATES, "stage", "reason", "table")
_STAGES = (GAP_STAGE, *STAGES)
_MILLIS = 1000
_NEWEST_FIRST: list[tuple[str, Literal["ascending", "descending"]]] = [
    ("timestamp", "descending"),
    ("topic", "ascending"),
    ("partition", "ascending"),
    ("offset", "descending"),
]


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """A selection of dead letters: those that match every field that is not None.

    `before_ms` and `after_ms`, in milliseconds since 1970, select records with an older or a newer
    timestamp, and none without a timestamp. Raises ConfigError for an unknown stage, an offset
    without topic and partition, or a partition without topic.
    """

    source: str | None = None
    topic: str | None = None
    stage: str | None = None
    reason: str | None = None
    before_ms: int | None = None
    table: str | None = None
    partition: int | None = None
    offset: int | None = None
    after_ms: int | None = None

    def __post_init__(self) -> None:
        if self.stage is not None and self.stage not in _STAGES:
            raise ConfigError(f"--stage '{self.stage}': choose {', '.join(_STAGES)}")
        if self.offset is not None and self.partition is None:
            raise ConfigError("--offset needs --partition and --topic")
        if self.partition is not None and self.topic is None:
            raise ConfigError("--partition needs --topic")

    @property
    def takes_all(self) -> bool:
        """Whether no condition is set, so that every dead letter is selected."""
        return self == DeadLetterFilter()

    def marks(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Return the mask `(n,)` of selected rows; `rows` needs the columns `FILTER_COLUMNS`."""
        selected = np.ones(rows.num_rows, np.bool_)
        for name in ("source", "topic", "stage", "reason", "table", "partition", "offset"):
            expected = getattr(self, name)
            if expected is not None:
                selected &= np.array(
                    [value == expected for value in rows.column(name).to_pylist()], np.bool_
                )
        if self.before_ms is not None or self.after_ms is not None:
            times = map(millis_of, rows.column("timestamp").to_pylist())
            selected &= np.array([self._takes_time(time) for time in times], np.bool_)
        return selected

    def _takes_time(self, time: int | None) -> bool:
        if time is None or (self.before_ms is not None and time >= self.before_ms):
            return False
        return self.after_ms is None or time > self.after_ms


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """An open dead-letter table, and which of its dead letters were replayed."""

    table: FileStoreTable
    replays: Replays

    def existing_columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the `columns` that the table has; tables of older versions have fewer columns."""
        return tuple(name for name in columns if name in self.table.schema.field_names)

    def rows(self, selection: DeadLetterFilter, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the selected dead letters of the newest snapshot in parts, which may be empty.

        Each part has the `columns` and all of `FILTER_COLUMNS`. Raises the errors of reading a
        table.
        """
        snapshot = latest_snapshot(self.table.io, self.table.paths)
        if snapshot is None:
            return
        names = tuple(dict.fromkeys((*FILTER_COLUMNS, *columns)))
        for rows in TableReader(self.table, names).rows(snapshot):
            yield rows.filter(pa.array(selection.marks(rows)))


def newest_dead_letters(
    opened: DeadLetters, selection: DeadLetterFilter, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the newest `limit` selected dead letters, and the number of all selected ones.

    Each is a row by column name, without key and value; `replayed` is whether it was replayed. Dead
    letters without a timestamp, which stand for lost records, are last. At most `limit` rows, and
    the rows of one part of the table, are in memory.
    """
    newest: pa.Table | None = None
    total = 0
    for rows in opened.rows(selection, (*FILTER_COLUMNS, "message")):
        total += rows.num_rows
        rows = rows.append_column("replayed", pa.array(opened.replays.marks(rows)))
        together = rows if newest is None else pa.concat_tables([newest, rows])
        order = pc.sort_indices(together, _NEWEST_FIRST)
        newest = together.take(order[:limit])
    return [] if newest is None else newest.to_pylist(), total


def open_dead_letters(warehouse: str, name: str) -> DeadLetters:
    """Open a dead-letter table, named as DB.TABLE, or as DB if it has the default name.

    Raises ConfigError if the table does not exist or is not a dead-letter table, FormatError if the
    table of replays is damaged, and the errors of the catalog.
    """
    identifier = Identifier.parse(name if "." in name else f"{name}.{DEAD_LETTER_TABLE}")
    catalog = open_catalog(warehouse)
    table = catalog.get_table(identifier)
    check_dead_letters(table)
    return DeadLetters(table, read_replays(catalog, identifier))


def time_before(text: str | None, option: str) -> int | None:
    """Subtract a duration such as `30d` from the current time; return milliseconds since 1970.

    Returns None for None. Raises ConfigError, naming the option, for an invalid duration.
    """
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{option} '{text}': {error}") from error
    return now_ms() - int(seconds * _MILLIS)


def millis_of(value: Any) -> int | None:  # noqa: ANN401  (a cell)
    """Convert a timestamp of a dead letter to milliseconds since 1970; None stays None."""
    return None if value is None else round(value.timestamp() * _MILLIS)

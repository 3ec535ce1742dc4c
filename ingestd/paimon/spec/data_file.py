"""Metadata of a data file in a manifest, including its column statistics.

Statistics are computed in `simple_stats`.
"""

from dataclasses import dataclass
from enum import IntEnum

from ingestd.paimon.spec.binary_row import EMPTY_ROW


class FileSource(IntEnum):
    """The origin of a data file, a value of `_FILE_SOURCE`."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Column statistics: minimum and maximum values as serialized rows, and null counts.

    Both rows and `null_counts` have one item per column. A null in the rows, or a null count of
    None, means that the value is unknown.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#simplestats
    """

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


EMPTY_STATS = SimpleStats(EMPTY_ROW, EMPTY_ROW, ())


@dataclass(frozen=True, slots=True)
class DataFileMeta:
    """Metadata of one data file.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#data-manifest

    `min_key` and `max_key` are serialized rows of the trimmed primary key (empty rows for append
    tables). `row_count` includes the `delete_row_count` deletions. Sizes are in bytes, times in
    milliseconds since 1970. `extra_files` are files beside it, such as an index file;
    `embedded_index` are the bytes of its file indexes. `external_path` is its path if it is outside
    the table, and `first_row_id` the id of its first row in a table with row tracking.
    `value_stats_cols` are the columns of `value_stats`, `write_cols` those in the file (None: all).
    For other fields, None means unknown or absent.
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_time_ms: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None

    def stats_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns of `value_stats`; `names` are all columns of the file's schema."""
        written = names if self.write_cols is None else self.write_cols
        return written if self.value_stats_cols is None else self.value_stats_cols

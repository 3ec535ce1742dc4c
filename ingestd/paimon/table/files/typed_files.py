"""Read data files that lack the types of their columns: CSV, JSON, text and blob files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#file-format
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.casts.csv_rows import csv_rows
from ingestd.paimon.casts.json_rows import json_rows
from ingestd.paimon.format.base import format_of
from ingestd.paimon.format.blob import read_blobs
from ingestd.paimon.format.text_lines import read_lines
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec import text_options
from ingestd.paimon.spec.arrow import column_of, to_arrow_type
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.option_types import Options


def read_typed(io: FileIO, path: str, fields: Sequence[DataField], options: Options) -> pa.Table:
    """Return all rows of a CSV, JSON, text or blob file, in file order.

    `fields` are all columns of the file, `options` the options of the table. Raises
    FileNotFoundError if the file does not exist, StorageError if the store fails, FormatError with
    the path if it is damaged, UnsupportedError for an unsupported compression.
    """
    try:
        return TYPED_FORMATS[format_of(path)](io, path, fields, options)
    except ValueError as error:
        raise FormatError(f"data file {path} has an invalid value: {error}") from error


def _csv(io: FileIO, path: str, fields: Sequence[DataField], options: Options) -> pa.Table:
    lines = read_lines(io, path, text_options.CSV_LINE_DELIMITER.of(options))
    return csv_rows(lines[text_options.CSV_HEADER.of(options) :], fields, options)


def _json(io: FileIO, path: str, fields: Sequence[DataField], options: Options) -> pa.Table:
    lines = read_lines(io, path, text_options.JSON_LINE_DELIMITER.of(options))
    return json_rows(lines, fields, options)


def _text(io: FileIO, path: str, fields: Sequence[DataField], options: Options) -> pa.Table:
    """Return the lines as the first column; others, which partitions have, are null."""
    lines: Any = read_lines(io, path, text_options.TEXT_LINE_DELIMITER.of(options))
    nulls: Any = pa.nulls
    columns = {field.name: nulls(len(lines), to_arrow_type(field.type)) for field in fields}
    return pa.table({**columns, fields[0].name: pa.array(lines, pa.string())})


def _blob(io: FileIO, path: str, fields: Sequence[DataField], options: Options) -> pa.Table:
    return pa.table({fields[0].name: column_of(read_blobs(io, path), fields[0].type)})


TYPED_FORMATS: Mapping[str, Callable[[FileIO, str, Sequence[DataField], Options], pa.Table]] = {
    "csv": _csv,
    "json": _json,
    "text": _text,
    "blob": _blob,
}
"""The functions that read the files of a format, by its name."""

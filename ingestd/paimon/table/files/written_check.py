"""Read back files written by a compaction before they replace others.

If a library stored a value incorrectly, the file would replace correct rows, and no checksum of the
file would detect it.
"""

import zlib
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import FormatError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.format.base import BatchSize, read_batches
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import NESTED_ROOTS
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.data_files import data_file_fields
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

CHECKS_EVERY_FILE = False
"""Set by tests. By default, only kinds of files that a library has written wrong are read back."""
_BATCH = BatchSize(8 << 20)
_MORE: Any = pc
_Numbers: TypeAlias = npt.NDArray[Any]


class ColumnChecksums:
    """Checksums of columns, and of their nested fields, lengths and nulls, by path.

    The rows are added in parts.
    """

    def __init__(self) -> None:
        self.by_path: dict[str, int] = Counter()

    def add(self, rows: pa.Table) -> None:
        """Update the checksums with more rows."""
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            for chunk in column.chunks:
                self._add(name, chunk)

    def differing(self, other: "ColumnChecksums") -> list[str]:
        """Return the paths, sorted, whose checksums differ from those of `other`."""
        names = self.by_path.keys() | other.by_path.keys()
        return sorted(name for name in names if self.by_path.get(name) != other.by_path.get(name))

    def _add(self, path: str, array: Array) -> None:
        column: Any = array
        kind: Any = array.type
        self._mix(f"{path} nulls", column.is_valid().cast(pa.int8()).to_numpy())
        if pa.types.is_struct(kind):
            for index, child in enumerate(column.flatten()):
                self._add(f"{path}.{kind.field(index).name}", child)
        elif pa.types.is_map(kind):
            self._add_list(
                path, column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
            )
        elif pa.types.is_list(kind):
            self._add_list(path, column)
        else:
            present = column.drop_null()
            if pa.types.is_string(kind) or pa.types.is_binary(kind):
                self._mix(f"{path} lengths", _MORE.binary_length(present).to_numpy())
            self._mix(path, _values(present))

    def _add_list(self, path: str, lists: Array) -> None:
        column: Any = lists
        lengths = _MORE.list_value_length(column.drop_null()).to_numpy()
        self._mix(f"{path} lengths", lengths)
        self._add(f"{path}[]", column.flatten())

    def _mix(self, path: str, values: _Numbers) -> None:
        data: Any = np.ascontiguousarray(values).view(np.uint8)
        self.by_path[path] = zlib.crc32(data, self.by_path[path])


def _values(array: Array) -> _Numbers:
    """Return the values of an array without nulls as a NumPy array of bytes or numbers."""
    present: Any = array
    kind, count, start = present.type, len(present), present.offset
    if not count:
        return np.zeros(0, np.uint8)
    if pa.types.is_boolean(kind):
        return np.asarray(present.cast(pa.uint8()).to_numpy())
    if pa.types.is_floating(kind):
        numbers = present.to_numpy()
        # All NaN values are treated as equal.
        return np.asarray(np.where(np.isnan(numbers), numbers.dtype.type("nan"), numbers))
    buffers = present.buffers()
    data = np.frombuffer(buffers[-1] or b"", np.uint8)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        ends = np.frombuffer(buffers[1], np.int32)
        return data[ends[start] : ends[start + count]]
    width = kind.bit_width // 8
    return data[start * width : (start + count) * width]


def is_checked(schema: TableSchema, options: CoreOptions) -> bool:
    """Return whether files of a table are read back: ORC files, and files with nested columns."""
    nested = any(field.type.root in NESTED_ROOTS for field in schema.fields)
    return CHECKS_EVERY_FILE or nested or options.file_format == "orc"


def check_written(table: FileStoreTable, path: str, written: ColumnChecksums) -> None:
    """Raise FormatError, naming the columns, unless a new file contains the rows written to it."""
    fields, checksums = data_file_fields(table.schema), ColumnChecksums()
    for batch in read_batches(table.io, path, None, _BATCH):
        checksums.add(evolve(batch, fields, fields))
    differing = written.differing(checksums)
    if differing:
        raise FormatError(
            f"data file {path} does not read back as it was written, in {', '.join(differing)}; "
            "the file was not used: set 'file.format' to another format, and report it"
        )

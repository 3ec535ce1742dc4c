"""What a file format must offer, and which formats there are.

A data file's format is told by the last part of its name, so a table may mix formats.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.options import CoreOptions

FORMATS: Mapping[str, str] = {
    "parquet": "ingestd.paimon.format.parquet",
}
"""Format name -> module with the functions of `FileFormat`."""


class FileFormat(Protocol):
    """A module of this package. Specification: Data files."""

    def write_file(self, io: FileIO, path: str, table: pa.Table, options: CoreOptions) -> int:
        """Write a new file; its size in bytes. UnsupportedError names a wrong option."""
        ...

    def encoded_size(self, table: pa.Table, options: CoreOptions) -> int:
        """Bytes that `write_file` would write."""
        ...

    def read_file(self, io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
        """Rows in file order with those of `columns` (None: all) that the file has.

        FileNotFoundError passes as is; FormatError names a file that cannot be decoded.
        """
        ...


def load_format(name: str) -> FileFormat:
    """The format of that name; UnsupportedError if there is none."""
    module = FORMATS.get(name)
    if module is None:
        raise UnsupportedError(
            f"file format '{name}' is not supported; set 'file.format' to one of {sorted(FORMATS)}"
        )
    return cast("FileFormat", import_module(module))


def format_of(file_name: str) -> str:
    """Format name in a data file's name: what stands behind the last dot."""
    return file_name.rpartition(".")[2]

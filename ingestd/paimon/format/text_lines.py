"""Read the lines of a text file, which is compressed if it has such an extension.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#text
"""

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Mapping

import pyarrow as pa

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.format.base import TEXT_COMPRESSIONS
from ingestd.paimon.io.file_io import FileIO

_PLAIN_DELIMITERS = frozenset({"", "\n", "\r", "\r\n"})
_LINE_END = re.compile(b"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


def read_lines(io: FileIO, path: str, delimiter: str) -> list[str]:
    """Return the lines of a file, without `delimiter` at their ends.

    If `delimiter` is a line break, every kind of line break separates lines. Raises
    FileNotFoundError if the file does not exist, FormatError if it is damaged, UnsupportedError if
    its compression is not supported.
    """
    stored, extension = io.read_bytes(path), path.rpartition(".")[2]
    unpack = _COMPRESSIONS.get(extension, bytes)
    if extension in TEXT_COMPRESSIONS - _COMPRESSIONS.keys():
        raise UnsupportedError(
            f"data file {path}: its compression is not supported; compact the table with another "
            "writer after setting 'file.format' to 'parquet'"
        )
    try:
        data = unpack(stored)
        if delimiter in _PLAIN_DELIMITERS:
            lines = _LINE_END.split(data.removeprefix(_BOM))
        else:
            lines = data.split(delimiter.encode())
        return [line.decode() for line in (lines if lines[-1] else lines[:-1])]
    except (ValueError, OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise FormatError(f"data file {path} is damaged: {error}") from error


def _unzstd(data: bytes) -> bytes:
    # The streaming API, because a zstandard frame need not state its decompressed size.
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read())


_COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "deflate": zlib.decompress,
    "zst": _unzstd,
}

"""Lines of text files, plain and compressed."""

import bz2
import gzip
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.format.text_lines import read_lines
from ingestd.paimon.io.memory import MemoryFileIO


def _stored(name: str, data: bytes) -> MemoryFileIO:
    io = MemoryFileIO()
    io.write_new(name, data)
    return io


@pytest.mark.parametrize(
    ("delimiter", "data", "lines"),
    [
        ("\n", b"a\nb\r\nc\rd", ["a", "b", "c", "d"]), ("\n", b"a\n\n", ["a", ""]),
        ("\n", b"", []), ("\r\n", b"\xef\xbb\xbfa\n", ["a"]), ("||", b"a\n||b||", ["a\n", "b"]),
    ],
)  # fmt: skip
def test_lines_end_at_the_delimiter(delimiter: str, data: bytes, lines: list[str]) -> None:
    assert read_lines(_stored("/w/a.csv", data), "/w/a.csv", delimiter) == lines


@pytest.mark.parametrize(
    ("extension", "pack"),
    [
        ("gz", gzip.compress), ("bz2", bz2.compress), ("deflate", zlib.compress),
        ("zst", lambda data: pa.Codec("zstd").compress(data, asbytes=True)),
    ],
)  # fmt: skip
def test_the_extension_names_the_compression(
    extension: str, pack: Callable[[bytes], bytes]
) -> None:
    path, data = f"/w/a.csv.{extension}", pack(b"a\nb\n")
    assert read_lines(_stored(path, data), path, "\n") == ["a", "b"]
    for broken in (data[:-3], b"\xff" + data):
        with pytest.raises(FormatError, match=path):
            read_lines(_stored(path, broken), path, "\n")


def test_other_compressions_are_refused() -> None:
    path = "/w/a.json.snappy"
    with pytest.raises(UnsupportedError, match=path):
        read_lines(_stored(path, b"x"), path, "\n")

"""Data files without types: errors name the file."""

import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.table.files.typed_files import read_typed

FIELDS = (DataField(0, "k", parse_type("INT")), DataField(1, "v", parse_type("STRING")))


def _io(name: str, data: bytes) -> MemoryFileIO:
    io = MemoryFileIO()
    io.write_new(name, data)
    return io


def test_a_header_is_not_a_row() -> None:
    io = _io("/w/a.csv", b"k,v\n1,x\n")
    rows = read_typed(io, "/w/a.csv", FIELDS, {"csv.include-header": "true"})
    assert rows.to_pylist() == [{"k": 1, "v": "x"}]


def test_a_text_file_has_the_first_column_only() -> None:
    fields = (FIELDS[1], FIELDS[0])
    rows = read_typed(_io("/w/a.text", b"x\n\n"), "/w/a.text", fields, {})
    assert rows.to_pylist() == [{"v": "x", "k": None}, {"v": "", "k": None}]


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("/w/a.json", b'{"k":"x"}\n', {}), ("/w/a.json", b"{\n", {}),
        ("/w/a.csv", b"x,y\n", {"csv.mode": "failfast"}), ("/w/a.blob", b"x", {}),
        ("/w/a.text", b"\xff\n", {}),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(name: str, data: bytes, options: dict[str, str]) -> None:
    with pytest.raises(FormatError, match=name):
        read_typed(_io(name, data), name, FIELDS, options)


def test_a_compression_that_is_not_supported_is_no_damage() -> None:
    with pytest.raises(UnsupportedError, match=r"/w/a\.csv\.lz4"):
        read_typed(_io("/w/a.csv.lz4", b"x"), "/w/a.csv.lz4", FIELDS, {})

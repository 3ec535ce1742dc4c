"""Column types of MySQL become types of the table, and texts become values of them."""

import datetime
import json
import struct
from decimal import Decimal
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from ingestd.cdc.columns.mysql_types import jdbc_column, mysql_column
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import chunk

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tinyint(1)", "BOOLEAN"),
        ("tinyint(4)", "TINYINT"),
        ("tinyint unsigned", "SMALLINT"),
        ("tinyint(1) unsigned", "SMALLINT"),
        ("tinyint(1) unsigned zerofill", "SMALLINT"),
        ("smallint(5) unsigned", "INT"),
        ("mediumint", "INT"),
        ("int(11)", "INT"),
        ("int(10) unsigned zerofill", "BIGINT"),
        ("bigint", "BIGINT"),
        ("BIGINT(20) UNSIGNED", "DECIMAL(20, 0)"),
        ("float", "FLOAT"),
        ("double(8,2)", "DOUBLE"),
        ("double precision", "DOUBLE"),
        ("decimal(10,2)", "DECIMAL(10, 2)"),
        ("decimal(5)", "DECIMAL(5, 0)"),
        ("decimal", "DECIMAL(38, 18)"),
        ("decimal(65,30)", "STRING"),
        ("date", "DATE"),
        ("time(3)", "TIME(3)"),
        ("datetime", "TIMESTAMP(0)"),
        ("timestamp(6)", "TIMESTAMP(6)"),
        ("year(4)", "INT"),
        ("char(3)", "CHAR(3)"),
        ("varchar(20)", "VARCHAR(20)"),
        ("varchar", "STRING"),
        ("longtext", "STRING"),
        ("json", "STRING"),
        ("enum('a','b')", "STRING"),
        ("set('a','b')", "ARRAY<STRING>"),
        ("bit(1)", "BOOLEAN"),
        ("bit(12)", "BINARY(2)"),
        ("varbinary(8)", "VARBINARY(8)"),
        ("longblob", "BYTES"),
        ("point", "STRING"),
        ("something new", "STRING"),
        ("", "STRING"),
    ],
)
def test_type_of_a_column(text: str, wanted: str) -> None:
    assert str(mysql_column("c", text, NONE).data_type) == wanted


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("tinyint1-not-bool", "tinyint(1)", "TINYINT"),
        ("char-to-string", "varchar(20)", "STRING"),
        ("char-to-string", "char(20)", "STRING"),
        ("longtext-to-bytes", "longtext", "BYTES"),
        ("bigint-unsigned-to-bigint", "bigint unsigned", "BIGINT"),
        ("to-string", "decimal(10,2)", "STRING"),
        ("to-string", "set('a')", "STRING"),
    ],
)
def test_type_mapping_changes_the_type(name: str, text: str, wanted: str) -> None:
    assert str(mysql_column("c", text, frozenset({name})).data_type) == wanted


def test_codes_of_jdbc_stand_in_for_texts() -> None:
    assert str(jdbc_column("c", 4).data_type) == "BIGINT"
    assert str(jdbc_column("c", 93).data_type) == "TIMESTAMP(6)"
    assert str(jdbc_column("c", 4711).data_type) == "STRING"


def decode(kind: str, cell: object, mapping: frozenset[str] = NONE, known: Any = None) -> Decoded:
    document = {"type": "INSERT", "database": "d", "table": "t", "pkNames": ["id"]}
    row = {"data": [{"id": "1", "c": cell}], "mysqlType": {"id": "int", "c": kind}}
    records = chunk([json.dumps(document | row).encode()])
    return load_data_format("canal-json", FormatSettings(mapping)).decode(records, known or {}, {})


def value(kind: str, cell: object, mapping: frozenset[str] = NONE) -> object:
    [batch] = decode(kind, cell, mapping).batches
    return batch.columns.column("c").to_pylist()[0]


SECOND = datetime.datetime.fromisoformat("2025-01-01T00:00:00.000001")
POINT = struct.pack("<IBIdd", 0, 1, 1, 1.5, 2.0).decode("latin-1")


@pytest.mark.parametrize(
    ("kind", "cell", "wanted"),
    [
        ("int", "-5", -5),
        ("int", 7, 7),
        ("tinyint(1)", "2", True),
        ("tinyint(1)", True, True),
        ("bigint unsigned", "18446744073709551615", Decimal(18446744073709551615)),
        ("decimal(10,2)", "1234", Decimal("1234.00")),
        ("double", "1e3", 1000.0),
        ("date", "2025-02-28", datetime.date(2025, 2, 28)),
        ("date", "0000-00-00", None),
        ("time", "23:59:59", datetime.time(23, 59, 59)),
        ("datetime(6)", "2025-01-01 00:00:00.000001", SECOND),
        ("enum('it''s','b,c')", "1", "it's"),
        ("enum('a','b')", "b", "b"),
        ("enum('a','b')", "0", ""),
        ("set('a','b','c')", "5", ["a", "c"]),
        ("set('a','b','c')", "a,c", ["a", "c"]),
        ("set('a','b','c')", "", []),
        ("bit(12)", "2049", b"\x08\x01"),
        ("bit(1)", "0", False),
        ("blob", "\u00ff\u0000", b"\xff\x00"),
        ("point", POINT, '{"type":"Point","coordinates":[1.5,2],"srid":0}'),
        ("varchar(3)", None, None),
    ],
)
def test_value_of_a_column(kind: str, cell: object, wanted: object) -> None:
    assert value(kind, cell) == wanted


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("int", "0x10"),
        ("int", "1.5"),
        ("int", "3000000000"),
        ("decimal(4,2)", "1.234"),
        ("date", "2025-02-30"),
        ("time", "-838:59:59"),
        ("enum('a','b')", "c"),
        ("set('a','b')", "4"),
        ("blob", "\u0394"),
        ("point", "abc"),
    ],
)
def test_value_that_does_not_fit_rejects_its_record(kind: str, cell: str) -> None:
    decoded = decode(kind, cell)
    assert [rejected_record.stage for rejected_record in decoded.rejected] == ["cast"]
    assert decoded.batches == []


@pytest.mark.parametrize(
    ("kind", "cell", "wanted"),
    [
        ("enum('0','1','2')", "1", "0"),
        ("enum('0','1','2')", "3", "2"),
        ("enum('0','1','2')", "0", ""),
        ("enum('0','7')", "7", "7"),
        ("enum('','a')", "1", ""),
        ("enum('a','b')", "", ""),
        (r"enum('a\nb\\n','it''s')", "1", "a\nb\\n"),
        ("enum('a','b')", None, None),
        ("set('1','2','3')", "3", ["1", "2"]),
        ("set('2','1')", "1", ["2"]),
        ("set('2','1')", "2,1", ["2", "1"]),
        ("set('8','9')", "9", ["9"]),
        ("set('a','b')", "0", []),
        ("set('a','b')", "", []),
        ("set('a','b')", None, None),
    ],
)
def test_a_number_is_the_place_of_a_label_also_among_labels_of_digits(
    kind: str, cell: str | None, wanted: object
) -> None:
    decoded = decode(kind, cell)
    assert not decoded.rejected
    [batch] = decoded.batches
    assert batch.columns.column("c").to_pylist() == [wanted]


def test_text_mapping_keeps_bits_labels_and_bytes_readable() -> None:
    mapping = frozenset({"to-string"})
    assert value("bit(8)", "5", mapping) == "00000101"
    assert value("set('a','b')", "3", mapping) == "a,b"
    assert value("longtext", "\u0394", frozenset({"longtext-to-bytes"})) == "\u0394".encode()


def test_decimal_without_a_size_has_that_of_the_table() -> None:
    known = {SourceTable("d", None, "t"): {"c": DataType("DECIMAL", precision=9, scale=3)}}
    [batch] = decode("decimal", "1.5", known=known).batches
    assert str(batch.types["c"]) == "DECIMAL(9, 3)"
    [batch] = decode("decimal(20,8)", "1.5", known=known).batches
    assert str(batch.types["c"]) == "DECIMAL(20, 8)"
    kept = frozenset({"decimal-no-change"})
    [batch] = decode("decimal(20,8)", "1.5", kept, known).batches
    assert str(batch.types["c"]) == "DECIMAL(9, 3)"

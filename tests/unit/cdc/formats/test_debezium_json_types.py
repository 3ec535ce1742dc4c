"""Messages without schema: what types are inferred, and how declared and known ones read values."""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.cdc.base import Decoded, load_data_format
from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.support.change_events import TABLE, chunk, key, raw_event


def decode(texts: list[str], *, known: str | None = None, declared: str | None = None) -> Decoded:
    """Rows {"v": text} of each text."""
    return load_data_format("debezium-json").decode(
        chunk([raw_event('{"n": 1, "v": ' + text + "}") for text in texts]),
        {} if known is None else {TABLE: {"v": parse_type(known)}},
        {} if declared is None else {TABLE: {"v": parse_type(declared)}},
    )


def column(decoded: Decoded) -> tuple[str, list[Any]]:
    [batch] = decoded.batches
    if "v" not in batch.types:
        return "", []
    return str(batch.types["v"]), batch.columns.column("v").to_pylist()


@pytest.mark.parametrize(
    ("texts", "data_type", "values"),
    [
        (["1", "null", "-9223372036854775808"], "BIGINT", [1, None, -(2**63)]),
        (["1", "9223372036854775808"], "DECIMAL(38, 0)", [Decimal(1), Decimal(2**63)]),
        (["9" * 39, "1"], "STRING", ["9" * 39, "1"]),
        (["1.5", "2", "null"], "DOUBLE", [1.5, 2.0, None]),
        (["1.5", "9007199254740993"], "STRING", ["1.5", "9007199254740993"]),
        (["1.50", '"x"'], "STRING", ["1.50", "x"]),
        (["1.5", '"-Infinity"'], "DOUBLE", [1.5, -math.inf]),
        (['"NaN"', '"x"'], "STRING", ["NaN", "x"]),
        (["true", "null", "false"], "BOOLEAN", [True, None, False]),
        (["true", "1"], "STRING", ["true", "1"]),
        (['"12"', '""', '"null"', "null"], "STRING", ["12", "", "null", None]),
        (['{"b": 1.50,  "a":[1]}', "null"], "STRING", ['{"b": 1.50,  "a":[1]}', None]),
        (["[1, 2.0]", '"x"', "3"], "STRING", ["[1, 2.0]", "x", "3"]),
        (['"\\u00e4\\ud83d\\ude00"'], "STRING", ["ä😀"]),
        (["null", "null"], "", []),
    ],
)
def test_type_is_inferred(texts: list[str], data_type: str, values: list[Any]) -> None:
    decoded = decode(texts)
    assert decoded.rejected == []
    assert column(decoded) == (data_type, values)


MOMENT = datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=UTC).replace(tzinfo=None)
DECLARED = [
    ("DECIMAL(10, 2)", '"MDk="', Decimal("123.45")),
    ("DECIMAL(10, 2)", "123.45", Decimal("123.45")),
    ("DECIMAL(10, 2)", '"123.45"', Decimal("123.45")),
    ("DECIMAL(10, 2)", '"-5"', Decimal("-5.00")),
    ("DECIMAL(10, 2)", "7", Decimal("7.00")),
    ("DECIMAL(10, 2)", '"1234"', Decimal("1234.00")),
    ("DECIMAL(10, 0)", '"1234"', Decimal("1234")),
    ("DECIMAL(38, 10)", "0.1234567891", Decimal("0.1234567891")),
    ("DATE", "-719162", date(1, 1, 1)),
    ("DATE", '"2024-02-29"', date(2024, 2, 29)),
    ("DATE", '"2024-02-29Z"', date(2024, 2, 29)),
    ("TIMESTAMP(3)", "1709210096789", MOMENT),
    ("TIMESTAMP(6)", "1709210096789000", MOMENT),
    ("TIMESTAMP(6)", '"2024-02-29T12:34:56.789"', MOMENT),
    ("TIMESTAMP(6)", '"2024-02-29 14:34:56.789+02:00"', MOMENT),
    ("TIMESTAMP_LTZ(6)", '"2024-02-29T12:34:56.789Z"', MOMENT.replace(tzinfo=UTC)),
    ("TIMESTAMP_LTZ(6)", '"2024-02-29T14:34:56.789+02:00"', MOMENT.replace(tzinfo=UTC)),
    ("TIMESTAMP_LTZ(3)", "1709210096789", MOMENT.replace(tzinfo=UTC)),
    ("TIME(3)", "45296789", time(12, 34, 56, 789000)),
    ("TIME(6)", "45296789999", time(12, 34, 56, 789000)),
    ("TIME(3)", '"12:34:56.789"', time(12, 34, 56, 789000)),
    ("BYTES", '"/wAB"', b"\xff\x00\x01"),
    ("BOOLEAN", "1", True),
    ("BOOLEAN", '"false"', False),
    ("INT", '"12"', 12),
    ("DOUBLE", '"NaN"', math.nan),
    ("DOUBLE", '"1.5"', 1.5),
    ("FLOAT", "0.1", 0.10000000149011612),
    ("STRING", "1.50", "1.50"),
    ("STRING", "12345678901234567890123", "12345678901234567890123"),
    ("STRING", "true", "true"),
    ("STRING", '{"a": 1.0}', '{"a": 1.0}'),
    ("VARCHAR(9)", '"x"', "x"),
]


@pytest.mark.parametrize("way", ["declared", "known"])
@pytest.mark.parametrize(("data_type", "text", "value"), DECLARED)
def test_fixed_type_reads_the_value(way: str, data_type: str, text: str, value: Any) -> None:
    decoded = decode([text, "null"], **{way: data_type})
    assert decoded.rejected == []
    found, values = column(decoded)
    assert found == str(parse_type(data_type))
    assert values[1] is None
    same_nan = isinstance(value, float) and math.isnan(value) and math.isnan(values[0])
    assert same_nan or values[0] == value


@pytest.mark.parametrize(
    ("element", "text", "values"),
    [
        ("INT", "[1, null, 2]", [1, None, 2]),
        ("DECIMAL(10, 2)", '["bg==", null, "/x8="]', [Decimal("1.10"), None, Decimal("-2.25")]),
        ("DECIMAL(10, 2)", "[1.1, 2]", [Decimal("1.10"), Decimal("2.00")]),
        ("DOUBLE", '[1.5, "Infinity"]', [1.5, math.inf]),
        ("STRING", '["a", null, ""]', ["a", None, ""]),
        ("STRING", "[1, true]", ["1", "true"]),
        ("BYTES", '["/w=="]', [b"\xff"]),
        ("DATE", "[0]", [date(1970, 1, 1)]),
        ("TIMESTAMP(6)", "[1709210096789000]", [MOMENT]),
        ("BOOLEAN", "[]", []),
    ],
)
def test_declared_arrays_convert_their_elements(element: str, text: str, values: Any) -> None:
    declared = DataType("ARRAY", element=parse_type(element))
    decoded = load_data_format("debezium-json").decode(
        chunk([raw_event('{"v": ' + text + "}"), raw_event('{"v": null}')]),
        {},
        {TABLE: {"v": declared}},
    )
    assert decoded.rejected == []
    assert column(decoded)[1] == [values, None]


def test_declared_map_and_row_read_objects() -> None:
    types = {
        "m": parse_type({"type": "MAP", "key": "STRING NOT NULL", "value": "DECIMAL(5, 1)"}),
        "r": parse_type(
            {"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "INT"},
                                       {"id": 1, "name": "b", "type": "DATE"}]}
        ),
    }  # fmt: skip
    value = raw_event('{"m": {"x": 1.5, "y": null}, "r": {"a": 7}}')
    decoded = load_data_format("debezium-json").decode(chunk([value]), {}, {TABLE: types})
    assert decoded.rejected == []
    [row] = decoded.batches[0].columns.to_pylist()
    assert row == {"m": [("x", Decimal("1.5")), ("y", None)], "r": {"a": 7, "b": None}}


@pytest.mark.parametrize(
    ("known", "texts", "wider"),
    [
        ("TINYINT", ["200"], "SMALLINT"),
        ("SMALLINT", ["70000"], "INT"),
        ("INT", ["1", "2147483648"], "BIGINT"),
        ("BIGINT", ["1", "1.5"], "DOUBLE"),
        ("BIGINT", ["9223372036854775807", "1.5"], "STRING"),
        ("BIGINT", ["9223372036854775808"], "DECIMAL(38, 0)"),
        ("BIGINT", ["1"], "BIGINT"),
        ("STRING", ["1"], "STRING"),
        ("DOUBLE", ["1"], "DOUBLE"),
    ],
)
def test_known_type_gets_wider_for_numbers(known: str, texts: list[str], wider: str) -> None:
    decoded = decode(texts, known=known)
    assert decoded.rejected == []
    assert column(decoded)[0] == wider


@pytest.mark.parametrize(
    ("fixed", "text", "reason"),
    [
        ("INT", "2147483648", "out-of-range"),
        ("INT", "1.5", "wrong-type"),
        ("INT", '"x"', "wrong-type"),
        ("DECIMAL(4, 2)", "123.4", "out-of-range"),
        ("DECIMAL(4, 2)", '"f/////8="', "out-of-range"),
        ("DECIMAL(4, 2)", "1.234", "wrong-type"),
        ("DATE", '"2024-02-30"', "wrong-type"),
        ("TIME(3)", "86400000", "out-of-range"),
        ("TIME(3)", '"24:00:00"', "out-of-range"),
        ("TIMESTAMP_LTZ(6)", '"2024-02-29T12:34:56"', "wrong-type"),
        ("TIMESTAMP(6)", "1.5", "wrong-type"),
        ("BYTES", '"not base64"', "wrong-type"),
        ("BOOLEAN", "2", "wrong-type"),
        ("FLOAT", "1e39", "out-of-range"),
        ("DOUBLE", "true", "wrong-type"),
    ],
)
def test_value_that_does_not_fit_a_declared_type_costs_its_record(
    fixed: str, text: str, reason: str
) -> None:
    decoded = decode(["null", text, "null"], declared=fixed)
    assert [(bad.offset, bad.stage, bad.reason) for bad in decoded.rejected] == [
        (1, "cast", reason)
    ]
    assert column(decoded) == (str(parse_type(fixed)), [None, None])


def test_fraction_of_nothing_fits_a_declared_integer() -> None:
    assert column(decode(["12.0"], declared="BIGINT")) == ("BIGINT", [12])


def test_key_columns_do_not_get_wider() -> None:
    values = [raw_event('{"id": 1}'), raw_event('{"id": 2147483648}')]
    decoded = load_data_format("debezium-json").decode(
        chunk(values, [key(id=1), key(id=2**31)]), {TABLE: {"id": DataType("INT")}}, {}
    )
    assert [(bad.offset, bad.reason) for bad in decoded.rejected] == [(1, "out-of-range")]
    assert str(decoded.batches[0].types["id"]) == "INT"


def test_few_strange_values_do_not_turn_a_new_column_into_text() -> None:
    decoded = decode([str(n) for n in range(50)] + ['"abc"', "true"])
    assert [bad.offset for bad in decoded.rejected] == [50, 51]
    assert column(decoded) == ("BIGINT", list(range(50)))


def test_new_knowledge_is_used_at_once() -> None:
    data_format = load_data_format("debezium-json")
    records = chunk([raw_event('{"v": 19782}')])
    assert column(data_format.decode(records, {}, {})) == ("BIGINT", [19782])
    known = {TABLE: {"v": DataType("STRING")}}
    assert column(data_format.decode(records, known, {})) == ("STRING", ["19782"])
    declared = {TABLE: {"v": DataType("DATE")}}
    assert column(data_format.decode(records, known, declared)) == ("DATE", [date(2024, 2, 29)])


def test_type_without_an_arrow_form_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="VARIANT"):
        decode(["1"], declared="VARIANT")


def test_base64_of_decimals_is_remembered_when_a_value_could_be_both() -> None:
    declared = {TABLE: {"v": DataType("DECIMAL", precision=10, scale=0)}}
    data_format = load_data_format("debezium-json")
    data_format.decode(chunk([raw_event('{"v": "SZYC0g=="}')]), {}, declared)
    decoded = data_format.decode(chunk([raw_event('{"v": "1234"}')]), {}, declared)
    assert column(decoded)[1] == [Decimal(-2658824)]


@pytest.mark.parametrize(
    ("texts", "values", "rejected"),
    [
        (['"19.99"', '"1234"', '""'], [Decimal("19.99"), Decimal("1234.00")], [2]),
        (['"1234"', '"5000"', '"abcd"'], [Decimal("1234.00"), Decimal("5000.00")], [2]),
        (['"1234"', '"n/a"'], [Decimal("1234.00")], [1]),
        (['"7"', '"NULL"', '"none"', "8"], [Decimal("7.00"), Decimal("8.00")], [1, 2]),
        (['"null"', "null"], [None], [0]),
        (
            ['"MDk="', '"1234"', '"AQ\\/w"', '"AQ=="', '"."'],
            ["123.45", "-26588.24", "696.16", ".01"],
            [4],
        ),
    ],
)
def test_strings_of_a_decimal_are_numbers_unless_most_are_base64(
    texts: list[str], values: list[Any], rejected: list[int]
) -> None:
    decoded = decode(texts, declared="DECIMAL(10, 2)")
    assert [bad.offset for bad in decoded.rejected] == rejected
    assert column(decoded)[1] == [None if v is None else Decimal(v) for v in values]


def test_a_decimal_without_values_so_far_does_not_read_numbers_as_base64() -> None:
    declared = {TABLE: {"v": DataType("DECIMAL", precision=10, scale=2)}}
    data_format = load_data_format("debezium-json")
    data_format.decode(chunk([raw_event('{"v": null}')]), {}, declared)
    decoded = data_format.decode(chunk([raw_event('{"v": "1234"}')]), {}, declared)
    assert column(decoded)[1] == [Decimal("1234.00")]


def test_one_number_among_base64_is_rejected_alone() -> None:
    declared = {TABLE: {"v": DataType("DECIMAL", precision=10, scale=2)}}
    data_format = load_data_format("debezium-json")
    data_format.decode(chunk([raw_event('{"v": "MDk="}')] * 3), {}, declared)
    mixed = chunk([raw_event('{"v": "19.99"}'), raw_event('{"v": "MDk="}')])
    for _ in range(2):
        decoded = data_format.decode(mixed, {}, declared)
        assert [bad.offset for bad in decoded.rejected] == [0]
        assert column(decoded)[1] == [Decimal("123.45")]


def test_columns_are_plain_arrays_of_their_arrow_type() -> None:
    [batch] = decode(["1", "2"]).batches
    assert batch.columns.schema.field("v").type == pa.int64()
    assert batch.types["v"].nullable

"""Rows of old files in the columns of a newer schema."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.evolution import evolve, file_columns
from ingestd.paimon.spec.arrow import column_of, column_values
from ingestd.paimon.spec.data_types import DataField, parse_type


def _field(number: int, name: str, text: Any) -> DataField:
    return DataField(number, name, parse_type(text))


def _read(old: Any, new: Any, values: list[Any]) -> list[object]:
    source, target = _field(0, "c", old), _field(0, "c", new)
    rows = pa.table({"c": column_of(values, source.type)})
    return column_values(evolve(rows, [source], [target]).column("c"))


def test_a_column_is_found_by_its_id_whatever_its_name() -> None:
    old = [_field(0, "a", "INT"), _field(1, "b", "INT")]
    new = [_field(1, "a", "INT"), _field(0, "b", "INT")]
    rows = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})
    assert evolve(rows, old, new).to_pydict() == {"a": [2], "b": [1]}
    assert {name: field.name for name, field in file_columns(old, new).items()} == {
        "a": "b",
        "b": "a",
    }


def test_a_column_that_the_file_does_not_have_is_null() -> None:
    old = [_field(0, "a", "INT"), _field(1, "gone", "INT")]
    new = [_field(2, "gone", "STRING"), _field(0, "a", "INT")]
    rows = pa.table({"a": pa.array([1], pa.int32()), "gone": pa.array([2], pa.int32())})
    found = evolve(rows, old, new)
    assert found.to_pydict() == {"gone": [None], "a": [1]}
    assert found.schema.types == [pa.string(), pa.int32()]


def test_no_rows_of_no_file_have_the_types_of_the_fields() -> None:
    found = evolve(pa.table({}), (), [_field(0, "a", "DECIMAL(5, 2)")])
    assert (found.num_rows, found.schema.types) == (0, [pa.decimal128(5, 2)])


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        ("TINYINT", "BIGINT", [-128, None], [-128, None]),
        ("BIGINT", "DOUBLE", [2**53 + 1, -1], [float(2**53), -1.0]),
        ("INT", "FLOAT", [16_777_217], [16_777_216.0]),
        ("FLOAT", "DOUBLE", [0.1], [0.10000000149011612]),
        ("SMALLINT", "DECIMAL(7, 2)", [-32768], [Decimal("-32768.00")]),
        ("BIGINT", "DECIMAL(38, 18)", [-(2**63)], [Decimal(f"-{2**63}.{'0' * 18}")]),
        ("DECIMAL(5, 2)", "DECIMAL(8, 4)", [Decimal("1.50")], [Decimal("1.5000")]),
        ("TIMESTAMP(0)", "TIMESTAMP(6)", [-1], [-1000]),
        ("TIME(0)", "TIME(3)", [1000], [1000]),
        ("VARCHAR(3)", "STRING", ["abc", None], ["abc", None]),
        ("STRING", "VARCHAR(2)", ["é𝄞x"], ["é𝄞"]),
        ("STRING", "CHAR(3)", ["a", "abcd"], ["a  ", "abc"]),
        ("BYTES", "BINARY(2)", [b"a", b"abc"], [b"a\0", b"ab"]),
        ("BIGINT", "INT", [2**31 + 5], [-(2**31) + 5]),
        ("DOUBLE", "INT", [1e300, float("nan"), -1.9], [2**31 - 1, 0, -1]),
        ("INT", "DECIMAL(3, 1)", [5, 100], [Decimal("5.0"), None]),
        ("DECIMAL(8, 4)", "DECIMAL(8, 2)", [Decimal("1.0050")], [Decimal("1.01")]),
        ("DOUBLE", "STRING", [1.0, 1e20], ["1.0", "1.0E20"]),
        ("FLOAT", "STRING", [0.1, 461826784.0], ["0.1", "4.61826784E8"]),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", [1_999, -1], [1, -1]),
        ("TIMESTAMP(3)", "DATE", [-1, 86_400_000], [0, 1]),
        ("TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", [7], [7]),
        ("STRING", "INT", ["12.9", None], [12, None]),
        ("BINARY(2)", "BYTES", [b"ab"], [b"ab"]),
        ("BIGINT", "STRING", [-5], ["-5"]),
        ("BOOLEAN", "STRING", [True, False], ["true", "false"]),
        ("DECIMAL(20, 10)", "STRING", [Decimal("0E-10")], ["0.0000000000"]),
        ("DATE", "STRING", [0, 2_932_897], ["1970-01-01", "+10000-01-01"]),
        ("INT NOT NULL", "INT", [1], [1]),
    ],
)
def test_wider_types_take_the_values_of_narrower_ones(
    old: str, new: str, values: list[Any], expected: list[Any]
) -> None:
    assert _read(old, new, values) == expected


@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        ("INT", "BYTES", [1]),
        ("DATE", "INT", [1]),
        ("DOUBLE", "TIMESTAMP(3)", [1.0]),
        ("INT", {"type": "ARRAY", "element": "INT"}, [1]),
    ],
)
def test_other_casts_are_refused_by_column_and_types(old: str, new: str, values: list[Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"column c: reading .* is not supported"):
        _read(old, new, values)


@pytest.mark.parametrize(
    ("text", "target"),
    [("x", "INT"), ("300", "TINYINT"), ("maybe", "BOOLEAN"), ("2024-02-30", "DATE"), ("", "DOUBLE"),
     ("1:2:3:4", "TIME(3)"), ("2024-01-01T00:00:00", "TIMESTAMP(3)"), ("1e", "DECIMAL(5, 2)")],
)  # fmt: skip
def test_a_text_that_is_no_such_value_is_refused_by_itself(text: str, target: str) -> None:
    with pytest.raises(UnsupportedError, match=f"column c: '{text}' cannot be read as"):
        _read("STRING", target, [text])


def test_a_value_out_of_the_range_of_a_timestamp_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="column c"):
        _read("TIMESTAMP(3)", "TIMESTAMP(6)", [2**62])


def test_digits_below_the_declared_unit_are_cut() -> None:
    rows = pa.table({"c": pa.array([1_999_999, -1], pa.timestamp("ns"))})
    field = _field(0, "c", "TIMESTAMP(3)")
    assert column_values(evolve(rows, [field], [field]).column("c")) == [1, -1]


def test_fields_of_rows_are_found_by_id_at_any_depth() -> None:
    def row(*fields: tuple[int, str, Any]) -> dict[str, Any]:
        named = [{"id": number, "name": name, "type": t} for number, name, t in fields]
        return {"type": "ROW", "fields": named}

    old = {"type": "ARRAY", "element": row((1, "a", "INT"), (2, "gone", "INT"))}
    new = {"type": "ARRAY", "element": row((3, "new", "STRING"), (1, "b", "BIGINT"))}
    assert _read(old, new, [[(7, 8), None], None, []]) == [
        [{"new": None, "b": 7}, None], None, [],
    ]  # fmt: skip


def test_values_of_maps_widen_and_keys_do_not() -> None:
    old = {"type": "MAP", "key": "STRING", "value": "INT"}
    new = {"type": "MAP", "key": "STRING", "value": "BIGINT"}
    assert _read(old, new, [[("a", 1)], None]) == [[("a", 1)], None]
    other = {"type": "MAP", "key": "VARCHAR(3)", "value": "BIGINT"}
    with pytest.raises(UnsupportedError):
        _read(old, other, [[("a", 1)]])


def test_slices_of_lists_keep_their_rows() -> None:
    old, new = (
        _field(0, "c", {"type": "ARRAY", "element": "INT"}),
        _field(0, "c", {"type": "ARRAY", "element": "BIGINT"}),
    )
    rows = pa.table({"c": column_of([[1], [2, 3], None, [4]], old.type)}).slice(1, 2)
    assert evolve(rows, [old], [new]).column("c").to_pylist() == [[2, 3], None]


def test_a_shredded_variant_is_put_together() -> None:
    kinds = [(name, pa.binary()) for name in ("value", "metadata", "typed_value")]
    cells = pa.array([{"value": None, "metadata": b"", "typed_value": b"1"}], pa.struct(kinds))
    field = _field(0, "c", "VARIANT")
    whole = evolve(pa.table({"c": cells}), [field], [field]).column("c").to_pylist()
    assert whole == [{"value": b"\x3c\1\0\0\x001", "metadata": b""}]


def test_a_shredded_variant_within_a_row_is_refused() -> None:
    inner = pa.struct([(name, pa.binary()) for name in ("value", "metadata", "typed_value")])
    rows = pa.table({"c": pa.array([None], pa.struct([("x", inner)]))})
    kind = parse_type({"type": "ROW", "fields": [{"id": 1, "name": "x", "type": "VARIANT"}]})
    field = DataField(0, "c", kind)
    with pytest.raises(UnsupportedError, match=r"column c: ROW.*shredded"):
        evolve(rows, [field], [field])

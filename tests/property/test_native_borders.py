"""Values of usual form take a short way through the native reader: here it ends where it must.

The first object of a reading goes field by field, those after it by what was learnt and in steps
of sixteen bytes. Whatever stands wherever, both ways must take the same and make the same of it.
"""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.cdc.native_module import Columns, NativeColumn, native_module
from ingestd.paimon.spec.arrow import Array

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)

MARK = "left out"
KINDS: dict[str, tuple[tuple[Any, ...], pa.DataType]] = {
    "long": (("integer", 64, 1, -(2**63), 2**63 - 1), pa.int64()),
    "int": (("integer", 32, 1, -(2**31), 2**31 - 1), pa.int32()),
    "third": (("integer", 32, 3, 0, 99), pa.int32()),
    "text": (("text", (MARK,)), pa.string()),
    "cost": (("decimal", 12, 2), pa.decimal128(12, 2)),
    "real": (("float", 64, True), pa.float64()),
    "op": (("choice", (b'"c"', b'"u"', b'"uu"')), pa.uint8()),
}
ROW = ("object", True, True, [(name, False, spec) for name, (spec, _) in KINDS.items()])
OLD = ("object", True, False, [("long", False, KINDS["long"][0])])
SPEC = ("object", False, False, [("old", False, OLD), ("row", False, ROW), ("t", True, ("null",))])

SOUND = (
    '{"old":{"long":7,"text":"é straße","cost":1.50,"far":[1]},"row":{"long":1750000123456,"int":0,'
    '"third":12,"text":"straße und Hof","cost":"123.45","real":95695.4697,"op":"u"},"t":null}'
)
OTHER = SOUND.replace("7", "8").replace("1.50", "22").replace("Hof", "Garten").replace("45", "99")
SPOILT = [b'"', b"\\", b",", b"}", b"0", b"-", b".", b"e", b" ", b"\x00", b"\x1f", b"\xc3", b"\xff"]


def read(texts: Sequence[bytes]) -> Columns | None:
    module = native_module()
    assert module is not None
    return module.Plan(SPEC).read([*texts], b"", b"")


def cells(found: NativeColumn, kind: pa.DataType, rows: int) -> list[Any]:
    parts = [found.validity, found.offsets, found.data]
    buffers = [None if part is None else pa.py_buffer(part) for part in parts]
    if found.offsets is None:
        del buffers[1]
    array: Array = pa.Array.from_buffers(kind, rows, buffers, found.nulls)
    array.validate(full=True)
    return array.to_pylist()


def last(texts: Sequence[bytes]) -> list[Any] | None:
    """All that is known of the last text; None if it is refused."""
    columns = read(texts)
    if columns is None:
        return None
    rows, found = len(texts), []
    for name, (_, kind) in KINDS.items():
        column = columns["row", name]
        marked = column.left_out is not None and rows - 1 in np.frombuffer(
            column.left_out, np.uint32
        )
        found.append((repr(cells(column, kind, rows)[-1]), marked))
    old = columns["old", "long"]
    return [*found, cells(old, pa.int64(), rows)[-1], bytes(memoryview(columns["row",].data))[-1:]]


def same_alone_and_behind_others(text: bytes) -> list[Any] | None:
    alone = last([text])
    for before in ([SOUND], [SOUND, OTHER, SOUND], [SOUND, OTHER, '{"row":null,"t":null}', OTHER]):
        assert last([*(one.encode() for one in before), text]) == alone
    return alone


def spoilt() -> Iterator[bytes]:
    whole = SOUND.encode()
    for at in range(len(whole)):
        yield whole[:at]
        yield whole[:at] + whole[at + 1 :]
        for byte in SPOILT:
            yield whole[:at] + byte + whole[at + 1 :]


def test_damage_at_any_place_is_judged_as_if_nothing_had_been_learnt() -> None:
    taken = sum(same_alone_and_behind_others(text) is not None for text in spoilt())
    assert taken > 100, "some damage is another value"


def with_value(name: str, value: str) -> bytes:
    whole = json.loads(SOUND)
    whole["row"][name] = "here"
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    return text.replace('"here"', value).encode()


@pytest.mark.parametrize("special", ['\\"', "\\u00e9", "\\ud83d\\ude00", "\\\\", "é", "😀", ""])
@pytest.mark.parametrize("behind", ["", "y" * 40])
def test_texts_are_whole_whatever_stands_at_the_border_of_a_lane(special: str, behind: str) -> None:
    for length in range(50):
        value = f'"{"x" * length}{special}{behind}"'
        found = same_alone_and_behind_others(with_value("text", value))
        assert found is not None
        assert found[3] == (repr(json.loads(value)), False)


def test_omitted_fields_stay_omitted_after_learnt_objects() -> None:
    found = same_alone_and_behind_others(with_value("text", json.dumps(MARK)))
    assert found is not None
    assert found[3] == ("None", True)


NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,22}|0[0-9]{1,3})(\.[0-9]{0,22})?([eE][+-]?[0-9]{0,3})?", fullmatch=True
)


@given(NUMBERS, st.sampled_from(["", " ", "\n", "x", '"']))
def test_numbers_are_the_same_by_either_way(number: str, behind: str) -> None:
    for name in KINDS:
        for value in (number, f'"{number}"', "null"):
            same_alone_and_behind_others(with_value(name, value + behind))


@pytest.mark.parametrize("digits", range(1, 24))
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_any_length_are_exact_or_refused(digits: int, sign: str) -> None:
    for value in (sign + "9" * digits, sign + "1" + "0" * (digits - 1)):
        found = same_alone_and_behind_others(with_value("long", value))
        assert (found is not None) == (-(2**63) <= int(value) < 2**63)
        assert found is None or found[0] == (value, False)


@pytest.mark.parametrize("whole", ["0", "7", "12345678", "1234567890"])
def test_decimals_are_exact_with_any_number_of_digits(whole: str) -> None:
    for fraction in ("", ".5", ".25", ".125"):
        found = same_alone_and_behind_others(with_value("cost", f'"{whole}{fraction}"'))
        assert (found is not None) == (len(fraction) < 4)
        if found is not None:
            assert found[4] == (repr(Decimal(whole + fraction).quantize(Decimal("0.01"))), False)


def test_rows_that_lack_fields_keep_their_places() -> None:
    texts = [SOUND, '{"t":null}', OTHER, '{"row":null,"old":null,"t":null}', '{"row":{},"t":null}']
    many = [text.encode() for text in texts * 9]
    columns = read(many)
    assert columns is not None
    for name, (_, kind) in KINDS.items():
        column, size = columns["row", name], len(many)
        alone = [cells(found["row", name], kind, 1)[0] for text in many if (found := read([text]))]
        assert cells(column, kind, size) == alone
        assert (column.seen, column.nulls) == (18, 27)

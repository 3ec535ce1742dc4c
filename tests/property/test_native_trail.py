"""Objects are read as they are written, however much of the latest one they repeat.

The native reader compares whole stretches of text with those of the object before. Here objects
repeat each other, and then change a value, an order, a blank, or a field, and every cell is
compared with what a plain parser says.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.cdc.json.message_layout import run_lengths
from ingestd.cdc.native_module import Columns, NativeColumn, native_module
from ingestd.paimon.spec.arrow import Array

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)

INTEGER = ("integer", 64, 1, -(2**63), 2**63 - 1)
SPEC = (
    "object",
    False,
    False,
    (
        ("id", True, INTEGER),
        ("text", False, ("text", ())),
        ("real", False, ("float", 64, False)),
        ("file", False, ("runs",)),
        ("table", True, ("literal", b'"t"')),
        ("none", False, ("null",)),
        (
            "row",
            False,
            ("object", True, False, (("id", False, INTEGER), ("mark", False, ("runs",)))),
        ),
    ),
)
ROW = st.fixed_dictionaries(
    {}, optional={"id": st.integers(0, 3), "mark": st.sampled_from([0, "é"]), "far": st.just("x")}
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": st.sampled_from([0, 1, -7, 12345678, 2**63 - 1]),
    "text": st.none()
    | st.sampled_from(["", "a", 'q"', "\\", "é" * 9, "x" * 15, "x" * 16, "y" * 40]),
    "real": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.just(5875.8056),
    "file": st.sampled_from(["log.1", "log.2", None]),
    "table": st.just("t"),
    "none": st.none(),
    "row": st.none() | ROW,
    "odd": st.sampled_from([0, "none", [1, {"a": "]"}], {}, "z" * 90]),
    "more": st.booleans(),
}
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])
Object = dict[str, Any]


@st.composite
def streams(draw: st.DrawFn) -> list[str]:
    """Texts of objects, many of which differ from the one before in one place or in none."""
    found: Object = draw(st.fixed_dictionaries(FIELDS))
    style, texts = draw(SEPARATORS), []
    for change in draw(st.lists(st.sampled_from("...vvvdoas"), min_size=1, max_size=60)):
        name = draw(st.sampled_from(sorted(FIELDS)))
        if change in "va":
            found[name] = draw(FIELDS[name])
        elif change == "d" and name not in ("id", "table"):
            found.pop(name, None)
        elif change == "o":
            found = {other: found[other] for other in draw(st.permutations(list(found)))}
        elif change == "s":
            style = draw(SEPARATORS)
        texts.append(json.dumps(found, ensure_ascii=False, separators=style))
    return texts


def read(texts: Sequence[str], spec: tuple[Any, ...] = SPEC) -> Columns | None:
    module = native_module()
    assert module is not None
    return module.Plan(spec).read([text.encode() for text in texts], b"", b"")


def cells(found: NativeColumn, kind: pa.DataType, rows: int) -> list[Any]:
    parts = (found.validity, found.offsets, found.data)
    buffers = [pa.py_buffer(part) if part is not None else None for part in parts]
    if found.offsets is None:
        del buffers[1]
    array: Array = pa.Array.from_buffers(kind, rows, buffers)
    return array.to_pylist()


def run_cells(found: NativeColumn, rows: int) -> list[Any]:
    texts = [None if text is None else json.loads(text) for _, text in found.runs or ()]
    places = np.repeat(np.arange(len(texts)), run_lengths(found, rows))
    return [texts[place] for place in places]


@given(streams())
def test_cells_are_those_of_a_plain_parser_whatever_repeats(texts: list[str]) -> None:
    columns, rows = read(texts), [json.loads(text) for text in texts]
    assert columns is not None
    size, inner = len(rows), [row.get("row") or {} for row in rows]
    assert cells(columns["id",], pa.int64(), size) == [row["id"] for row in rows]
    assert cells(columns["text",], pa.string(), size) == [row.get("text") for row in rows]
    reals = cells(columns["real",], pa.float64(), size)
    assert list(map(repr, reals)) == [repr(row.get("real")) for row in rows]
    assert run_cells(columns["file",], size) == [row.get("file") for row in rows]
    assert cells(columns["row", "id"], pa.int64(), size) == [row.get("id") for row in inner]
    assert run_cells(columns["row", "mark"], size) == [row.get("mark") for row in inner]
    for name in ("text", "real", "file", "none", "row"):
        if (name,) in columns and name != "row":
            assert columns[name,].seen == sum(name in row for row in rows)
    assert columns["row",].seen == sum(row.get("row") is not None for row in rows)


SOUND = '{"a":1,"id":%d,"table":"t","file":"f","z":null}'


@pytest.mark.parametrize(
    "irregular",
    [
        SOUND.replace('"t"', '"u"'),
        SOUND.replace('"z":null', '"id":1'),
        SOUND.replace('"z":null', '"file":"f"'),
        SOUND.replace('"table":"t",', ""),
        SOUND.replace("null}", "nul}"),
        SOUND.replace("null}", "null,}"),
        SOUND.replace('"a":1,', '"a":1,,'),
        SOUND.replace('"a":1,', '"a":01,'),
        SOUND.replace('"a":1,', '"a":1 2,'),
        SOUND + "}",
        SOUND[:-1],
        SOUND.replace('"f"', '"f'),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 2, 200])
def test_an_irregular_object_is_found_after_any_number_of_regular_ones(
    irregular: str, before: int
) -> None:
    sound = [SOUND % number for number in range(before)]
    assert read(sound) is not None
    assert read([*sound, irregular % 7]) is None
    assert read([irregular % 7, *sound]) is None


def test_shapes_that_never_settle_are_read_to_the_end() -> None:
    texts = [
        json.dumps({"id": at, "table": "t", **dict.fromkeys("abcdefg"[at % 7 :], at)})
        for at in range(2000)
    ]
    columns = read(texts)
    assert columns is not None
    assert cells(columns["id",], pa.int64(), len(texts)) == list(range(2000))


@pytest.mark.parametrize("kind", ["float", "decimal"])
@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
)
def test_numbers_are_what_a_plain_parser_says(kind: str, text: str) -> None:
    spec = ("float", 64, False) if kind == "float" else ("decimal", 38, 17)
    columns = read([f'{{"n":{text}}}'], ("object", False, False, (("n", True, spec),)))
    if kind == "float":
        assert columns is not None
        value = float(text) if set(text) & set(".eE") else float(text) + 0.0
        assert repr(cells(columns["n",], pa.float64(), 1)) == repr([value])
        return
    assert (columns is None) == (set(text) & set("eE") != set())
    if columns is not None:
        assert cells(columns["n",], pa.decimal128(38, 17), 1) == [Decimal(text)]

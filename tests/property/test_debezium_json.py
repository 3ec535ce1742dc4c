"""Decoding against a model: whatever rows a table has, wherever bad records stand among them."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import load_data_format
from ingestd.cdc.json.row_plan import Decoders
from ingestd.paimon.spec.data_types import RowKind
from tests.support.change_events import chunk, event, field, key, wrapped, wrapped_key

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "flag": ("boolean", st.booleans()),
    "small": ("int16", st.integers(-(2**15), 2**15 - 1)),
    "big": ("int64", st.integers(-(2**63), 2**63 - 1)),
    "real": ("double", st.floats(allow_nan=False, allow_infinity=False)),
    "text": ("string", TEXT),
    "names": ("array", st.lists(st.none() | TEXT, max_size=3)),
}
FIELDS = [field("id", "int32")] + [
    field(name, kind, items={"type": "string", "optional": True})
    if kind == "array"
    else field(name, kind)
    for name, (kind, _) in VALUES.items()
]
ROWS = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()})
BAD = st.sampled_from(
    [
        b"", b"{", b"}", b"\xff", b"[]", b"1", b'{"op":"c"}', b"{}{}", b'{"op":"z","source":{}}',
        b'{"schema":{},"payload":{}}', b'{"after":{', b"{}\n{}", b"\n", b'{"schema":',
    ]
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, dict[str, Any]]]:
    """Operations with key and row; `bad` has the bad bytes in its row."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(["c", "r", "u", "d", "tombstone", "bad"]))
        row = {"bytes": draw(BAD)} if op == "bad" else draw(ROWS)
        found.append((op, number, row))
    return found


def message(op: str, number: int, row: dict[str, Any], *, bare: bool) -> bytes | None:
    if op == "tombstone":
        return None
    if op == "bad":
        bad: bytes = row["bytes"]
        return bad
    image = {"id": number, **row}
    found = event(op, None if op == "d" else image, before=image if op == "d" else None)
    return found if bare else wrapped(found, FIELDS)


@settings(max_examples=120, deadline=None)
@given(st.lists(histories(), min_size=1, max_size=3), st.booleans())
def test_every_record_is_accounted_for(
    chunks: list[list[tuple[str, int, dict[str, Any]]]], bare: bool
) -> None:
    data_format = load_data_format("debezium-json")
    for history in chunks:
        ids = [key(id=number) for _, number, _ in history]
        keys = ids if bare else [wrapped_key(id_, FIELDS[:1]) for id_ in ids]
        values = [message(*change, bare=bare) for change in history]
        decoded = data_format.decode(chunk(values, keys), {}, {})
        bad = [number for op, number, _ in history if op == "bad"]
        assert [dead_letter.offset for dead_letter in decoded.rejected] == bad
        assert decoded.control == sum(op == "tombstone" for op, _, _ in history)
        found = {
            offset: (kind, row)
            for batch in decoded.batches
            for offset, kind, row in zip(
                batch.offset.tolist(),
                batch.row_kind.tolist(),
                batch.columns.to_pylist(),
                strict=True,
            )
        }
        wanted = {n: (op, row) for op, n, row in history if op not in {"bad", "tombstone"}}
        assert found.keys() == wanted.keys()
        for number, (op, row) in wanted.items():
            assert_row(found[number], op, number, row, bare=bare)


def assert_row(
    found: tuple[int, dict[str, Any]], op: str, number: int, row: dict[str, Any], *, bare: bool
) -> None:
    kinds = {"c": RowKind.INSERT, "r": RowKind.INSERT, "u": RowKind.UPDATE_AFTER}
    kind, cells = found
    assert kind == kinds.get(op, RowKind.DELETE)
    assert cells.pop("id") == number
    for name in VALUES:
        wanted = None if op == "d" else row[name]
        cell = cells.get(name)
        if bare and name == "names" and wanted is not None:
            cell = json.loads(cell)
        assert cell == wanted


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b"{}", b'{"a":1}', b"{} {}", b"{", b"}", b"{}\n", b"\n{}", b""])))
def test_joined_messages_never_run_into_each_other(messages: list[bytes]) -> None:
    def one(data: bytes) -> object:
        document = json.loads(data)
        assert isinstance(document, dict)
        return document

    def lines(data: bytes) -> list[object]:
        decoder, found, at = json.JSONDecoder(), [], 0
        text = data.decode()
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            document, at = decoder.raw_decode(text, at)
            found.append(document)
        return found

    try:
        wanted: object = [one(data) for data in messages]
    except ValueError:
        wanted = ValueError
    try:
        got: object = Decoders(one, lines).many(messages)
    except ValueError:
        got = ValueError
    assert got == wanted

"""What is read natively, what is left to the decoder in Python, and that no one can tell."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ingestd.cdc.base import ChangeBatch, RecordChunk, SourceTable
from ingestd.cdc.json import table_messages
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import TABLE, chunk, event, field, key, wrapped, wrapped_key
from tests.support.decoded import both_decoders, outcome

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)

Facts = dict[str, Any]
PLACEHOLDER = "__debezium_unavailable_value"
FIELDS = [field("id", "int32"), field("v", "string")]
ROW = {"id": 1, "v": "x"}


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects the numbers of messages that only Python could decode, plan by plan."""
    found: list[int] = []
    decode: Callable[..., ChangeBatch] = table_messages._decode_in_python

    def spy(plan: Any, payloads: Any) -> ChangeBatch:
        if plan.native is not None:
            found.append(len(payloads.values))
        return decode(plan, payloads)

    monkeypatch.setattr(table_messages, "_decode_in_python", spy)
    return found


def same(chunks: list[RecordChunk], **types: Any) -> list[Any]:
    native, pure = both_decoders()
    found, wanted = outcome(native, chunks, **types), outcome(pure, chunks, **types)
    assert found == wanted
    return found


def keyed(*values: bytes, ids: list[int] | None = None) -> RecordChunk:
    return chunk(values, [key(id=n) for n in ids or [1] * len(values)])


FIRST = keyed(event("c", ROW), event("u", ROW, before=ROW), event("r", {"id": 1, "v": None}))


@pytest.mark.parametrize(
    "second",
    [
        keyed(event("d", before=ROW), event("c", {"v": "in another order", "id": 1})),
        keyed(event("u", {"id": 2, "v": "m"}, before=ROW), event("u", ROW), ids=[2, 1]),
        keyed(event("u", {"id": 1, "v": PLACEHOLDER}, before=None)),
        keyed(event("d", ROW), event("c", ROW)),
        keyed(event("c", {"v": "the key is only in the message key"})),
        keyed(event("c", {"id": 1, "v": 'quotes " and \\ and \n and \u0000'})),
        keyed(event("c", {"id": 1, "v": "ümläut 😀"}).replace("😀".encode(), b"\\ud83d\\ude00")),
        keyed(event("c", {"id": 1})),
        keyed(event("u", {"id": 2}, before=ROW), ids=[2]),
        keyed(event("c", {"id": 1, "v": None}, lsn=None, file="bin.000003", pos=7, row=1)),
        keyed(event("c", ROW, snapshot="first"), event("c", ROW, snapshot=True, x=[{}, [1.5e3]])),
        keyed(event("c", ROW).replace(b": ", b" :\t").replace(b", ", b"\r\n,")),
    ],
    ids=lambda _: "chunk",
)
def test_usual_messages_are_read_natively(second: RecordChunk, in_python: list[int]) -> None:
    [_, facts] = same([FIRST, second])
    assert facts["rejected"] == []
    assert in_python == []


@pytest.mark.parametrize(
    "irregular",
    [
        event("c", {"id": 1, "v": "x", "new": 1}),
        event("c", {"id": "1", "v": "x"}),
        event("c", {"id": 2**63, "v": "x"}),
        event("c", ROW, lsn=-1),
        event("c", ROW, before=None).replace(b'"v"', b'"\\u0076"'),
        event("c", ROW).replace(b'"v": "x"', b'"v": "x", "v": "y"'),
        event("c", ROW) + b"{}",
        event("c", ROW)[:-1],
        event("c", ROW).replace(b'"x"', b'"\xff"'),
        event("c", ROW, nested=0).replace(b"0", b"[" * 65 + b"]" * 65),
        event("c", ROW, table=SourceTable("shopdb", "public", "others")),
        event("t", None),
        b"",
    ],
    ids=lambda _: "message",
)
def test_odd_messages_are_decoded_in_python(irregular: bytes, in_python: list[int]) -> None:
    same([FIRST, keyed(event("c", ROW), irregular, event("c", ROW))])
    assert in_python


def test_an_odd_message_costs_no_more_than_its_slice(in_python: list[int]) -> None:
    usual = [event("c", ROW)] * 9000
    irregular = event("c", ROW, lsn="text")
    same([FIRST, keyed(*usual[:5000], irregular, *usual[:5000])])
    assert in_python == [4096]


def test_wrappers_are_taken_off_natively(in_python: list[int]) -> None:
    def sent(*events: bytes) -> RecordChunk:
        keys = [wrapped_key(key(id=1), FIELDS[:1])] * len(events)
        return chunk([wrapped(event, FIELDS) for event in events], keys)

    usual = sent(event("c", ROW), event("d", before=ROW))
    same([usual, usual])
    assert in_python == []
    other = chunk([wrapped(event("c", ROW), FIELDS[:1])] * 2, usual.keys)
    same([usual, other])


def test_a_default_stands_for_a_value_that_did_not_come() -> None:
    columns = [*FIELDS, field("d", "string", default="as ever")]
    rows = [{**ROW, "d": "x"}, ROW]
    chunks = [
        chunk([wrapped(event("c", row), columns)], [wrapped_key(key(id=1), FIELDS[:1])])
        for row in rows
    ]
    [_, facts] = same(chunks)
    assert facts["batches"][0]["columns"]["d"] == ["'as ever'"]


def test_tables_without_a_key_delete_the_row_before(in_python: list[int]) -> None:
    rows = [event("c", ROW), event("d", before={"id": 2, "v": None}), event("u", ROW, before=ROW)]
    [_, facts] = same([chunk(rows), chunk(rows)])
    assert facts["batches"][0]["columns"] == {
        "id": ["1", "2", "1"],
        "v": ["'x'", "None", "'x'"],
    }
    assert in_python == []


def test_tombstones_and_messages_beside_them_are_read_natively(in_python: list[int]) -> None:
    values = [event("c", ROW), None, event("d", before=ROW), None]
    [_, facts] = same([FIRST, chunk(values, [key(id=1)] * 4)])
    assert facts["control"] == 2
    assert in_python == []


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ("DECIMAL", ["12.50", 7, 1.25, "-0.01", None]),
        ("DOUBLE", [1.5, 2, "NaN", "-Infinity", -0.0, 1e300]),
        ("FLOAT", [0.1, 2, "Infinity"]),
        ("DATE", [19782, -1]),
        ("DATE", ["2024-02-29", "-0044-03-15"]),
        ("TIMESTAMP", ["2024-02-29T01:02:03.123456", "2024-02-29T01:02:03Z"]),
        ("BYTES", ["AQI=", "", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]),
        ("BOOLEAN", [True, False, None]),
        ("STRING", [1, "text", {"a": [1, 2]}]),
    ],
)
def test_declared_types_come_out_the_same(
    declared: str, values: list[Any], in_python: list[int]
) -> None:
    types = {"DECIMAL": {"precision": 9, "scale": 2}, "TIMESTAMP": {"precision": 6}}
    data_type = DataType(declared, **types.get(declared, {}))
    records = keyed(*(event("c", {"id": 1, "v": value}) for value in values))
    [_, facts] = same([records, records], declared={TABLE: {"v": data_type}})
    assert facts["rejected"] == []
    assert in_python == []


MANY_AFTER_ONE = """
import resource
from ingestd_native import Plan
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
plan = Plan(("object", False, False, (("text", False, ("text", ())),)))
assert plan.read([b'{"text":"%s"}' % (b"x" * (1 << 20))], b"", b"") is not None
assert plan.read([b'{"text":"x"}'] * 20_000, b"", b"") is not None
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded as Linux does it")
def test_many_short_texts_after_a_long_one_take_no_room_for_as_many_long_ones() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY_AFTER_ONE],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr

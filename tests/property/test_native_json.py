"""The native reader and the decoder in Python make the same of every stream, however odd."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import TABLE, chunk, field, wrapped, wrapped_key
from tests.support.decoded import both_decoders, outcome

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)

PLACEHOLDER = "__debezium_unavailable_value"
BASE64_PLACEHOLDER = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
DECIMAL = {"parameters": {"scale": "2", "connect.decimal.precision": "9"}}
COLUMNS = {
    "id": field("id", "int32"),
    "part": field("part", "string"),
    "flag": field("flag", "boolean", default=True),
    "tiny": field("tiny", "int8"),
    "small": field("small", "int16"),
    "big": field("big", "int64"),
    "real": field("real", "double"),
    "single": field("single", "float"),
    "text": field("text", "string"),
    "with_default": field("with_default", "string", default="x"),
    "blob": field("blob", "bytes"),
    "amount": field("amount", "bytes", "org.apache.kafka.connect.data.Decimal", **DECIMAL),
    "any_scale": field("any_scale", "struct", "io.debezium.data.VariableScaleDecimal"),
    "day": field("day", "int32", "io.debezium.time.Date"),
    "clock": field("clock", "int32", "io.debezium.time.Time"),
    "fine_clock": field("fine_clock", "int64", "io.debezium.time.MicroTime"),
    "moment": field("moment", "int64", "io.debezium.time.MicroTimestamp"),
    "zoned": field("zoned", "string", "io.debezium.time.ZonedTimestamp"),
    "bits": field("bits", "bytes", "io.debezium.data.Bits", parameters={"length": "12"}),
    "names": field("names", "array", items={"type": "string", "optional": True}),
}
DECLARED = {
    "amount": DataType("DECIMAL", precision=9, scale=3),
    "fine_clock": DataType("TIME", precision=6),
    "big": DataType("DECIMAL", precision=20, scale=0),
    "zoned": DataType("TIMESTAMP", precision=3),
    "blob": DataType("STRING"),
}

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    [PLACEHOLDER, BASE64_PLACEHOLDER, "12.50", "NaN", "2024-02-29T01:02:03.123456Z", "AQI=", ""]
)
NUMBERS = st.sampled_from(Path(__file__).with_name("json_numbers.txt").read_text().split())
BASE64 = st.binary(max_size=20).map(lambda b: base64.b64encode(b).decode())
SOUND: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(0, 5),
    "part": st.sampled_from(["a", "b", "é"]),
    "flag": st.booleans(),
    "tiny": st.integers(-128, 127),
    "small": st.integers(-32768, 32767),
    "big": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30),
    "single": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "blob": BASE64,
    "amount": st.integers(-999, 10**6).map(
        lambda n: base64.b64encode(n.to_bytes(4, "big", signed=True)).decode()
    )
    | st.sampled_from(["AQ==", "AYY=", "/w==", "gA==", "AIA="]),
    "any_scale": st.just({"scale": 1, "value": "AQ=="}),
    "day": st.integers(-(10**5), 10**5),
    "clock": st.integers(0, 86_399_999),
    "fine_clock": st.integers(0, 86_399_999_999),
    "moment": st.integers(-(10**15), 10**15),
    "zoned": st.sampled_from(["2024-02-29T01:02:03.123456Z", "1969-12-31T23:59:59Z"]),
    "bits": st.sampled_from(["AQA=", "/w8="]),
    "names": st.lists(st.none() | TEXTS, max_size=3),
}
ODD = st.one_of(
    NUMBERS,
    TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False)),
    TEXTS.map(json.dumps),
    st.sampled_from(['"\\ud800"', '"\\q"', '"\\/"', '"\t"', "[1,]", "[[]]", "{}", "tru", ""]),
    st.just("[" * 90),
)
BLANKS = st.sampled_from(["", "", "", " ", "\t", "\n ", "\r\n", "\x0b", "\u00a0"])


@st.composite
def rows(draw: st.DrawFn, names: list[str]) -> dict[str, str]:
    """JSON texts of the values of a row, all as the connector writes them."""
    return {
        name: json.dumps(draw(SOUND.get(name, TEXTS)), ensure_ascii=draw(st.booleans()))
        if draw(st.integers(0, 9)) or name == "id"
        else "null"
        for name in names
    }


def joined(pairs: list[tuple[str, str]], blank: str = "") -> str:
    fields = f",{blank}".join(f'"{name}"{blank}:{blank}{value}' for name, value in pairs)
    return f"{{{blank}{fields}{blank}}}"


@st.composite
def odd_object(draw: st.DrawFn, pairs: list[tuple[str, str]]) -> str:
    """The object with something changed: values, names, order, number or blanks of its fields."""
    changed = list(pairs)
    for _ in range(draw(st.integers(0, 2))):
        how = draw(st.integers(0, 5))
        at = draw(st.integers(0, max(0, len(changed) - 1)))
        if not changed or how == 0:
            changed.insert(at, (draw(st.sampled_from(["new", "tex\\u0074", "é", ""])), draw(ODD)))
        elif how == 1:
            changed[at] = (changed[at][0], draw(ODD))
        elif how == 2:
            changed.pop(at)
        elif how == 3:
            changed.append((changed[at][0], draw(ODD)))
        elif how == 4:
            changed = draw(st.permutations(changed))
        else:
            changed[at] = (changed[at][0], "null")
    return joined(changed, draw(BLANKS))


@st.composite
def messages(draw: st.DrawFn, names: list[str], *, irregular: bool) -> tuple[str, str]:
    """Payloads of a value and of its key."""
    row = draw(rows(names))
    before = dict(row) if draw(st.booleans()) else draw(rows(names))
    op = draw(st.sampled_from("cruuud"))
    if not draw(st.integers(0, 4)):
        # A field that did not come is no oddity of its own.
        defaulted = [name for name in names if "default" in COLUMNS[name]]
        row.pop(draw(st.sampled_from(defaulted or names)))
    images = {"before": joined([*before.items()]), "after": joined([*row.items()])}
    if op == "d":
        images["after"] = "null"
    elif op != "u" or not draw(st.integers(0, 3)):
        images["before"] = "null"
    source = [*NAMES, ("snapshot", draw(st.sampled_from(SNAPSHOTS))), *draw(POSITIONS)]
    key = [(name, row.get(name, before[name])) for name in ("id", "part") if name in names]
    event = [*images.items(), ("source", joined(source)), ("op", f'"{op}"'), ("ts_ms", "12")]
    if not irregular:
        return joined(event), joined(key)
    spot = draw(st.integers(0, 5))
    if spot == 0:
        event[1] = ("after", draw(odd_object([*row.items()])))
    elif spot == 1:
        event[0] = ("before", draw(odd_object([*before.items()])))
    elif spot == 2:
        event[2] = ("source", draw(odd_object(source)))
    return draw(odd_object(event)) if spot == 3 else joined(event), (
        draw(odd_object(key)) if spot == 4 else joined(key)
    )


NAMES = [("db", '"shopdb"'), ("schema", '"public"'), ("table", '"orders"'), ("ts_ms", "1")]
SNAPSHOTS = ['"false"', '"false"', '"true"', '"last"', "false", "true", "null", '"fals\\u0065"']
POSITIONS = st.sampled_from(
    [
        [], [("lsn", "100")], [("lsn", "-1")], [("lsn", "null"), ("file", "null")],
        [("lsn", '"7"')],
        [("file", '"bin.000001"'), ("pos", "4"), ("row", "0")],
        [("file", '"bin.000002"'), ("pos", "4294967296"), ("row", "1")],
        [("file", '"bin.000002"'), ("pos", "-4"), ("row", "4096")],
        [("file", '"bin.٣"'), ("pos", "7"), ("row", "null")], [("file", '"bin"'), ("pos", '"7"')],
        [("file", '"b.99999999"'), ("pos", "null"), ("row", "1")], [("pos", "1"), ("row", "1")],
    ]
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """A message with a byte changed, cut short, or with something before or after it."""
    at = draw(st.integers(0, len(data) - 1))
    how = draw(st.integers(0, 4))
    if how == 0:
        return data[:at]
    if how == 1:
        return data + draw(st.sampled_from([b" ", b"\x00", b"x", b"{}", b"\n"]))
    byte = draw(st.binary(min_size=1, max_size=2))
    return data[:at] + byte + data[at + 1 :]


@st.composite
def streams(draw: st.DrawFn) -> dict[str, Any]:
    """Chunks of one table: first sound ones, so that there is a plan, then others."""
    wanted = draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True, max_size=7))
    keyed = draw(st.integers(0, 3)) > 0
    names = list(dict.fromkeys(["id", *wanted]))
    bare = draw(st.booleans())
    fields = [COLUMNS[name] for name in names]
    key_fields = [COLUMNS[name] for name in ("id", "part") if name in names]
    found, first = [], 0
    for number in range(draw(st.integers(2, 3))):
        values: list[bytes | None] = []
        keys: list[bytes | None] = []
        for _ in range(draw(st.integers(1, 6))):
            irregular = number > 0 and draw(st.integers(0, 3)) == 0
            value, key = (part.encode() for part in draw(messages(names, irregular=irregular)))
            values.append(value if bare else wrapped(value, fields))
            keys.append(None if not keyed else key if bare else wrapped_key(key, key_fields))
            if number and draw(st.integers(0, 15)) == 0:
                values[-1] = draw(damaged(values[-1] or b"x"))
            if number and draw(st.integers(0, 15)) == 0:
                values[-1] = None
        found.append(chunk(values, keys, first=first))
        first += len(values)
    declared = {TABLE: DECLARED} if draw(st.integers(0, 2)) == 0 else {}
    return {"chunks": found, "declared": declared}


@settings(max_examples=200)
@given(streams(), st.booleans())
def test_both_decoders_make_the_same_of_every_stream(stream: dict[str, Any], images: bool) -> None:
    native, pure = both_decoders(images=images)
    assert outcome(native, **stream) == outcome(pure, **stream)

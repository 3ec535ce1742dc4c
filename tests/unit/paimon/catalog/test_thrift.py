import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.paimon.catalog.thrift import (
    Entries,
    Items,
    Kind,
    Struct,
    ThriftError,
    Value,
    boolean,
    encode_call,
    i32,
    i64,
    read_reply,
    structure,
    structures,
    text,
    text_map,
    texts,
)

_SCALARS = st.one_of(
    st.booleans().map(boolean),
    st.integers(-(2**31), 2**31 - 1).map(i32),
    st.integers(-(2**63), 2**63 - 1).map(i64),
    st.integers(-128, 127).map(lambda number: Value(Kind.BYTE, number)),
    st.integers(-(2**15), 2**15 - 1).map(lambda number: Value(Kind.I16, number)),
    st.floats(allow_nan=False).map(lambda number: Value(Kind.DOUBLE, number)),
    st.binary().map(lambda data: text(data.decode("utf-8", "surrogateescape"))),
    st.lists(st.text()).map(lambda contents: texts(*contents)),
    st.dictionaries(st.text(), st.text()).map(text_map),
    st.sets(st.integers(-5, 5)).map(lambda items: Value(Kind.SET, Items(Kind.I32, tuple(items)))),
)
_FIELDS = st.integers(1, 2**15 - 1)
_STRUCTS = st.recursive(
    st.dictionaries(_FIELDS, _SCALARS),
    lambda inner: st.dictionaries(
        _FIELDS, inner.map(structure) | st.lists(inner).map(lambda items: structures(*items))
    ),
    max_leaves=5,
)


def reply(result: Struct, kind: int = 2) -> bytes:
    """A reply with this result, which differs from a call only in its kind."""
    message = encode_call("m", result)
    return struct.pack(">I", 0x80010000 | kind) + message[4:]


@given(_STRUCTS)
def test_structures_are_read_as_they_were_written(result: Struct) -> None:
    assert read_reply(io.BytesIO(reply(result))) == result


def test_a_call_has_the_bytes_of_the_specification() -> None:
    message = encode_call("ab", {1: text("é"), 2: i32(-2), 3: texts("x"), 4: text_map({"k": "v"})})
    assert message == (
        b"\x80\x01\x00\x01\x00\x00\x00\x02ab\x00\x00\x00\x00"
        b"\x0b\x00\x01\x00\x00\x00\x02\xc3\xa9"
        b"\x08\x00\x02\xff\xff\xff\xfe"
        b"\x0f\x00\x03\x0b\x00\x00\x00\x01\x00\x00\x00\x01x"
        b"\x0d\x00\x04\x0b\x0b\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x01v"
        b"\x00"
    )


def test_an_empty_map_may_have_no_kinds() -> None:
    data = reply({0: text_map({})}).replace(b"\x0d\x00\x00\x0b\x0b", b"\x0d\x00\x00\x00\x00")
    assert read_reply(io.BytesIO(data))[0].content == Entries(Kind.TEXT, Kind.TEXT, {})


def test_invalid_replies_are_refused() -> None:
    whole = reply({0: text("value")})
    for length in range(len(whole)):
        with pytest.raises(ThriftError, match="closed the connection"):
            read_reply(io.BytesIO(whole[:length]))
    with pytest.raises(ThriftError, match="binary protocol"):
        read_reply(io.BytesIO(b"HTTP/1.1 400 Bad Request"))
    with pytest.raises(ThriftError, match="not a reply"):
        read_reply(io.BytesIO(reply({}, kind=1)))
    with pytest.raises(ThriftError, match="Invalid method name"):
        read_reply(io.BytesIO(reply({1: text("Invalid method name: 'm'")}, kind=3)))
    with pytest.raises(ThriftError, match="unknown type 99"):
        read_reply(io.BytesIO(whole.replace(b"\x0b\x00\x00\x00", b"\x63\x00\x00\x00")))
    with pytest.raises(ThriftError, match="value of -1 bytes"):
        read_reply(io.BytesIO(whole.replace(b"\x00\x00\x00\x05value", b"\xff\xff\xff\xffvalue")))

import pytest

from ingestd.cdc.record_errors import RecordError
from ingestd.cdc.schema_frames import SchemaFrame, frame_of, grouped
from ingestd.cdc.schema_lookup import Framing
from tests.support.registered import chunk_of, framed

GUID = bytes(range(16))


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (b"\0\0\0\0\x07body", SchemaFrame(b"\0\0\0\0\x07", 5)),
        (b"\1" + GUID + b"body", SchemaFrame(b"\1" + GUID, 17)),
        (b"\0\0", SchemaFrame(b"\0\0", 5)),
        (b"", SchemaFrame(b"", 5)),
    ],
)
def test_the_frame_is_what_stands_before_the_body(message: bytes, wanted: SchemaFrame) -> None:
    assert frame_of(Framing(), message, None, is_key=False) == wanted


def test_ids_are_numbers_or_guids_and_all_else_is_refused() -> None:
    assert SchemaFrame(b"\0\0\0\1\0", 5).schema_id("decode") == 256
    assert SchemaFrame(b"\0" + bytes(7) + b"\3", 9).schema_id("decode") == 3
    assert SchemaFrame(b"\1" + GUID, 17).schema_id("decode") == GUID.hex()
    for mark in (b"", b"\0", b"\2\0\0\0\0", b'{"id"', b"\1\0", b"Obj\1\4"):
        with pytest.raises(RecordError) as caught:
            SchemaFrame(mark, 5).schema_id("key")
        assert (caught.value.reason.stage, caught.value.reason.code) == ("key", "no-schema-id")


def test_a_header_wins_where_it_is_asked_for() -> None:
    headers = [("__key_schema_id", b"\0\0\0\0\1"), ("__value_schema_id", b"\1" + GUID + b"\2")]
    framing = Framing("auto")
    assert frame_of(framing, b"x", headers, is_key=True) == SchemaFrame(b"\0\0\0\0\1", 0)
    assert frame_of(framing, b"x", headers, is_key=False) == SchemaFrame(b"\1" + GUID, 0, b"\2")
    assert frame_of(Framing(), b"x", headers, is_key=True) == SchemaFrame(b"x", 5)
    assert frame_of(framing, b"\0\0\0\0\1", [], is_key=True) == SchemaFrame(b"\0\0\0\0\1", 5)


@pytest.mark.parametrize("location", ["prefix", "auto"])
def test_records_are_grouped_by_the_schemas_of_value_and_key(location: str) -> None:
    values = [framed(1, b"a"), None, framed(2, b"b"), framed(1, b"c"), framed(1, b"d")]
    keys = [framed(9, b"k"), framed(9, b"l"), None, framed(9, b"m"), None]
    framing = Framing("prefix" if location == "prefix" else "auto")
    groups = grouped(chunk_of(values, keys), framing)
    assert [(g.indices.tolist(), len(g.keys), g.key is None) for g in groups] == [
        ([0, 3], 2, False),
        ([2], 0, True),
        ([4], 0, True),
    ]
    alone = grouped(chunk_of(values, keys), framing, with_keys=False)
    assert [(g.indices.tolist(), [*g.keys]) for g in alone] == [([0, 3, 4], []), ([2], [])]
    (whole,) = grouped(chunk_of(values[3:], keys[:1] * 2), framing)
    assert (whole.indices.tolist(), whole.values, whole.keys) == ([0, 1], values[3:], keys[:1] * 2)

"""Blocks of Avro files: every codec, and every kind of damage."""

import contextlib
import io
import zlib

import fastavro
import pyarrow as pa
import pytest

from ingestd.paimon.spec.avro_blocks import (
    BROKEN,
    ENCODERS,
    decode_blocks,
    decode_records,
    encode_blocks,
    encode_records,
    open_blocks,
    parse_block_schema,
)

DOCUMENT = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
TEXT = '{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}'
ROWS = [{"n": n * n} for n in range(100)]
SCHEMA = parse_block_schema(DOCUMENT)


def rows_of(data: bytes) -> list[dict[str, int]]:
    blocks = decode_blocks(data).blocks
    return [row for count, payload in blocks for row in decode_records(SCHEMA, count, payload)]


@pytest.mark.parametrize("codec", ENCODERS)
def test_blocks_of_every_codec_come_back(codec: str) -> None:
    parts = [ROWS[:60], ROWS[60:]]
    blocks = [(len(part), encode_records(SCHEMA, part)) for part in parts]
    data = encode_blocks(TEXT, blocks, codec)
    assert rows_of(data) == ROWS
    if codec not in ("zstandard", "snappy"):  # of which the library needs others
        assert list(fastavro.reader(io.BytesIO(data))) == ROWS


def test_snappy_blocks_of_others_are_read_and_their_checksum_is_checked() -> None:
    payload = encode_records(SCHEMA, ROWS)
    import_block = _snappy(payload)
    assert rows_of(_of_others(import_block)) == ROWS
    with pytest.raises(ValueError, match="checksum"):
        rows_of(_of_others(import_block[:-1] + b"?"))


def _of_others(block: bytes) -> bytes:
    """A file with one snappy block, and without the checksum that is written here."""
    data = encode_blocks(TEXT, [(100, block)], "null").replace(b"\x08null", b"\x0csnappy")
    return data.replace(b"ingestd.crc32", b"another.entry")


@pytest.mark.parametrize("codec", ENCODERS)
def test_no_byte_of_a_file_can_change_what_is_read(codec: str) -> None:
    data = encode_blocks(TEXT, [(100, encode_records(SCHEMA, ROWS))], codec)
    for at in range(len(data)):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with contextlib.suppress(*BROKEN):
            assert rows_of(damaged) == ROWS


@pytest.mark.parametrize("codec", ENCODERS)
def test_a_file_that_lost_its_only_block_is_not_taken_for_an_empty_one(codec: str) -> None:
    data = encode_blocks(TEXT, [(100, encode_records(SCHEMA, ROWS))], codec)
    with pytest.raises(ValueError, match="checksum"):
        rows_of(data[: len(encode_blocks(TEXT, [], codec))])


def _snappy(payload: bytes) -> bytes:

    packed = pa.compress(payload, codec="snappy", asbytes=True)
    return packed + zlib.crc32(payload).to_bytes(4, "big")


@pytest.mark.parametrize("codec", ENCODERS)
def test_a_file_cut_anywhere_inside_a_block_is_broken(codec: str) -> None:
    data = encode_blocks(TEXT, [(100, encode_records(SCHEMA, ROWS))], codec)
    header = len(encode_blocks(TEXT, [], codec))
    for end in range(header + 1, len(data)):
        with pytest.raises(BROKEN):
            rows_of(data[:end])


def test_a_block_with_other_records_than_announced_is_broken() -> None:
    for count in (99, 101, -1):
        with pytest.raises(BROKEN):
            decode_records(SCHEMA, count, encode_records(SCHEMA, ROWS))


def test_blocks_are_read_as_they_are_asked_for() -> None:
    blocks = [(1, encode_records(SCHEMA, [row])) for row in ROWS]
    data = encode_blocks(TEXT, blocks)
    stream = io.BytesIO(data)
    opened = open_blocks(stream, len(data))
    assert opened.schema == TEXT
    assert next(opened.blocks) == blocks[0]
    assert stream.tell() < len(data) // 10
    assert list(opened.blocks) == blocks[1:]


def test_a_block_of_an_impossible_size_is_not_asked_of_the_stream() -> None:
    data = encode_blocks(TEXT, [])
    for head in (b"\x02" + b"\xfe" * 8 + b"\x7f", b"\x01\x02", b"\x02\x01"):
        with pytest.raises(BROKEN):
            decode_blocks(data + head + bytes(40))


def test_a_block_of_no_records_has_no_bytes() -> None:
    assert decode_records(SCHEMA, 0, b"") == []
    with pytest.raises(BROKEN):
        decode_records(SCHEMA, 0, encode_records(SCHEMA, ROWS[:1]))

import io

import fastavro
import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.spec.avro_container import decode_records, encode_records

SCHEMA = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "n", "type": "long"},
        {"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    ],
}
ROWS = [{"n": i, "t": None if i % 2 else 1_700_000_000_123} for i in range(2000)]
VERSIONED = [{"_VERSION": 2, **row} for row in ROWS]


def by_fastavro(codec: str) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, VERSIONED, codec=codec, sync_interval=1000)
    return out.getvalue()


def test_records_come_back_with_their_version() -> None:
    assert decode_records(encode_records(SCHEMA, 2, ROWS), 2, "f") == VERSIONED


def test_a_file_without_records_still_has_a_schema() -> None:
    data = encode_records(SCHEMA, 2, [])
    assert decode_records(data, 2, "f") == []
    assert b"avro.schema" in data


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_other_writers_with_many_blocks_are_read(codec: str) -> None:
    assert decode_records(by_fastavro(codec), 2, "f") == VERSIONED


def test_the_codec_is_zstandard() -> None:
    data = encode_records(SCHEMA, 2, ROWS)
    assert b"zstandard" in data
    assert bytes.fromhex("28b52ffd") in data


def test_another_version_is_a_format_error() -> None:
    with pytest.raises(FormatError, match=r"some-file has _VERSION \[3\], only 2 is understood"):
        decode_records(encode_records(SCHEMA, 3, ROWS), 2, "some-file")


def test_a_record_without_version_is_a_format_error() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"n": 1}])
    with pytest.raises(FormatError, match="some-file"):
        decode_records(out.getvalue(), 2, "some-file")


def test_a_codec_that_java_does_not_know_is_named() -> None:
    data = by_fastavro("null").replace(b"\x08null", b"\x08lzma")
    with pytest.raises(FormatError, match="codec 'lzma' is not one of"):
        decode_records(data, 2, "f")


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_file_that_was_cut_off_is_never_shorter_data(codec: str) -> None:
    data = by_fastavro(codec)
    for size in (0, 3, 40, len(data) // 2, len(data) - 17, len(data) - 1):
        with pytest.raises(FormatError, match="cut-file"):
            decode_records(data[:size], 2, "cut-file")


def test_a_block_that_holds_less_than_it_says_is_a_format_error() -> None:
    data = by_fastavro("null")
    marker = data[-16:]
    body = data.index(marker) + 16
    broken = data[:body] + bytes([data[body] + 2]) + data[body + 1 :]
    with pytest.raises(FormatError):
        decode_records(broken, 2, "f")


@pytest.mark.parametrize("data", [b"Obj\x01", b"something else", b"Obj\x01\x02\x00\x00"])
def test_what_is_no_avro_file_is_a_format_error(data: bytes) -> None:
    with pytest.raises(FormatError, match="no readable Avro file"):
        decode_records(data, 2, "f")


def test_a_manifest_of_another_format_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"manifest format Parquet.*'manifest\.format'"):
        decode_records(b"PAR1 something else", 2, "f")

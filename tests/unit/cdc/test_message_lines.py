import pytest

from ingestd.cdc.message_lines import lines_chunk, whole_chunk
from ingestd.errors import ConfigError


def test_a_line_is_a_record_at_its_number() -> None:
    found = lines_chunk(b'{"a":1}\n\n  \n{"a":2}', "t")
    assert found.topic == "t"
    assert found.offsets.tolist() == [1, 4]
    assert found.values == [b'{"a":1}', b'{"a":2}']
    assert found.keys == [None, None]


def test_a_separator_parts_keys_from_values() -> None:
    found = lines_chunk(b"k1|v|w\n|v\nk2|\n", "t", separator=b"|")
    assert found.keys == [b"k1", None, b"k2"]
    assert found.values == [b"v|w", b"v", None]


def test_a_line_without_the_separator_is_named() -> None:
    with pytest.raises(ConfigError, match=r"line 2 .*'none'"):
        lines_chunk(b"k|v\nnone\n", "t", separator=b"|")


def test_no_more_lines_are_taken_than_asked_for() -> None:
    assert lines_chunk(b"a\n\nb\nc\n", "t", limit=2).offsets.tolist() == [1, 3]


def test_a_whole_file_is_one_record_whatever_its_bytes() -> None:
    found = whole_chunk(b"\x00\n\xff", "t")
    assert found.values == [b"\x00\n\xff"]
    assert found.offsets.tolist() == [1]


def test_lines_end_at_line_feeds_only() -> None:
    assert lines_chunk(b'{"a":"x\x0by\x1cz"}\r\n{}\n', "t").values == [
        b'{"a":"x\x0by\x1cz"}',
        b"{}",
    ]

"""Variants as JSON."""

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.casts.rows_json import variant_text

NAMES = bytes([0x01, 2, 0, 1, 3]) + b"abb"
"""A metadata with the names a and bb."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x00", "null"), (b"\x04", "true"), (b"\x08", "false"), (b"\x0c\xff", "-1"),
        (b"\x10\x00\x80", "-32768"), (b"\x14\x01\x00\x00\x00", "1"),
        (b"\x18" + (2**40).to_bytes(8, "little"), str(2**40)),
        (b"\x1c" + bytes.fromhex("000000000000f83f"), "1.5"),
        (b"\x1c" + bytes.fromhex("000000000000f07f"), '"Infinity"'),
        (b"\x20\x02\x85\x00\x00\x00", "1.33"), (b"\x20\x02\x0a\x00\x00\x00", "0.1"),
        (b"\x24\x01" + (-5).to_bytes(8, "little", signed=True), "-0.5"),
        (b"\x28\x00" + (10**30).to_bytes(16, "little"), str(10**30)),
        (b"\x2c\x00\x00\x00\x00", '"1970-01-01"'),
        (b"\x30" + (1_500_000).to_bytes(8, "little"), '"1970-01-01 00:00:01.5+00:00"'),
        (b"\x34" + (0).to_bytes(8, "little"), '"1970-01-01 00:00:00"'),
        (b"\x38" + bytes.fromhex("cdcccc3d"), "0.1"),
        (b"\x3c\x02\x00\x00\x00\x01\x02", '"AQI="'),
        (b"\x40\x01\x00\x00\x00\x01", '"\\u0001"'), (b"\x05a", '"a"'),
        (b"\x50" + bytes(16), '"00000000-0000-0000-0000-000000000000"'),
        (b"\x03\x00\x00", "[]"), (b"\x03\x02\x00\x01\x02\x04\x08", "[true,false]"),
        (b"\x02\x02\x00\x01\x00\x01\x03\x00\x0c\x07", '{"a":null,"bb":7}'),
    ],
)  # fmt: skip
def test_every_kind_has_the_text_that_java_gives_it(value: bytes, text: str) -> None:
    assert variant_text(value, NAMES) == text


@pytest.mark.parametrize(
    "value",
    [b"", b"\x14\x01", b"\xfc", b"\x05", b"\x02\x01\x09\x00\x00\x00", b"\x03\x01\x00\x01",
     b"\x05\xff", b"\x03\x01\x00\x00" * 600],
)  # fmt: skip
def test_broken_bytes_are_a_format_error(value: bytes) -> None:
    with pytest.raises(FormatError, match="no variant"):
        variant_text(value, NAMES)

"""Tests for ingestd.paimon.format.orc."""

import pytest

from ingestd.paimon.format.orc import check_scales
from ingestd.paimon.format.orc_layout import ScaleStream

SMALL_REPEAT = bytes([0x02, 38 * 2])
REPEAT = bytes([0x0A, 0x27, 0x10])
DIRECT = bytes([0x40 | 15 << 1, 0x03, 0x5C, 0xA1, 0xAB, 0x1E, 0xDE, 0xAD, 0xBE, 0xEF])
SMALL_DIRECT = bytes([0x40 | 6 << 1, 0x07, *bytes(7)])
DELTA = bytes([0xC6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46])
STEADY_DELTA = bytes([0xC1, 0xFF, 0x00, 0x14])
PATCHED = bytes.fromhex("8e132b2107d01e001470282e3c4650525a646e78828c96a0aab4bebefce8")
SMALL_PATCHED = bytes([0x80 | 1 << 1, 0x03, 0x03, 0x01, 0x05, 0b01_10_00_11, 0b0_1111_000])


@pytest.mark.parametrize("data", [b"", SMALL_REPEAT, SMALL_DIRECT, DELTA, SMALL_PATCHED])
def test_runs_of_small_scales_pass_one_after_the_other(data: bytes) -> None:
    check_scales(ScaleStream(2, data + SMALL_REPEAT))


@pytest.mark.parametrize("data", [REPEAT, DIRECT, STEADY_DELTA, PATCHED])
def test_a_run_that_may_have_a_large_one_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="scales of decimals up to"):
        check_scales(ScaleStream(2, SMALL_REPEAT + data))


@pytest.mark.parametrize("data", [DELTA[:2], PATCHED[:2], DIRECT[:1]])
def test_a_run_without_its_head_is_refused(data: bytes) -> None:
    with pytest.raises(IndexError):
        check_scales(ScaleStream(2, SMALL_REPEAT + data))


def test_an_older_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="encoding 0"):
        check_scales(ScaleStream(0, b""))

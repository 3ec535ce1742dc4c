"""Check that the scales of ORC decimals are valid.

Checking the bounds of each run of scales is sufficient, so runs are not unpacked.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#orc
"""

from collections.abc import Callable

from ingestd.paimon.format.orc_layout import ScaleStream, varint

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bit width of packed values by its code."""
_MOST = 1023
"""Largest accepted bound of the scales in a run.

Valid scales are at most 38, and the bound of a run of valid scales is below this limit.
"""
_RUN_LENGTHS = 2
"""The encoding that all writers have used since ORC 0.12."""


def check_scales(stream: ScaleStream) -> None:
    """Raise ValueError if a scale may be outside -1023 to 1023, IndexError for truncated bytes."""
    if stream.encoding != _RUN_LENGTHS:
        raise ValueError(f"scales of decimals in encoding {stream.encoding}")
    data, at = stream.data, 0
    while at < len(data):
        bound, at = _RUNS[data[at] >> 6](data, at)
        if bound > _MOST:
            raise ValueError(f"scales of decimals up to {bound}")


def _short_repeat(data: bytes, at: int) -> tuple[int, int]:
    width = (data[at] >> 3 & 7) + 1
    value = int.from_bytes(data[at + 1 : at + 1 + width], "big")
    return abs(_unzigzag(value)), at + 1 + width


def _direct(data: bytes, at: int) -> tuple[int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _count(data, at)
    return (1 << width - 1) - 1, at + 2 + _packed_bytes(width, count)


def _delta(data: bytes, at: int) -> tuple[int, int]:
    code, count = data[at] >> 1 & 31, _count(data, at)
    width = _WIDTHS[code] if code else 0
    base, at = varint(data, at + 2)
    step, at = varint(data, at)
    first, step = abs(_unzigzag(base)), abs(_unzigzag(step))
    if not width:
        return first + step * (count - 1), at
    packed = int.from_bytes(data[at : at + _packed_bytes(width, count - 2)], "big")
    spare = -width * (count - 2) % 8
    steps, mask = packed >> spare, (1 << width) - 1
    total = sum(steps >> width * n & mask for n in range(count - 2))
    return first + step + total, at + _packed_bytes(width, count - 2)


def _patched(data: bytes, at: int) -> tuple[int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _count(data, at)
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    base = int.from_bytes(data[at + 4 : at + 4 + base_bytes], "big")
    base &= ~(1 << 8 * base_bytes - 1)
    patch = next((bits for bits in _WIDTHS if bits >= gap_width + patch_width), _WIDTHS[-1])
    after = at + 4 + base_bytes + _packed_bytes(width, count) + _packed_bytes(patch, patches)
    return base + (1 << width + patch_width) - 1, after


def _count(data: bytes, at: int) -> int:
    return ((data[at] & 1) << 8 | data[at + 1]) + 1


def _packed_bytes(width: int, count: int) -> int:
    return -(-width * max(count, 0) // 8)


def _unzigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)


_RUNS: tuple[Callable[[bytes, int], tuple[int, int]], ...] = (
    _short_repeat, _direct, _patched, _delta,
)  # fmt: skip

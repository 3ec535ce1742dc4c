"""The 32-bit Murmur3 hash of bytes, with the seed 0, as Guava computes it."""

_MASK = 0xFFFFFFFF


def murmur3_32(data: bytes) -> int:
    """Return the hash of bytes as an unsigned 32-bit number."""
    hashed, whole = 0, len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = _mixed(int.from_bytes(data[start : start + 4], "little"))
        hashed = (_rotated(hashed ^ word, 13) * 5 + 0xE6546B64) & _MASK
    hashed ^= _mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    return hashed ^ hashed >> 16


def _mixed(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK

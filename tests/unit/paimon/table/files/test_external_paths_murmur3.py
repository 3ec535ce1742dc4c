import pytest

from ingestd.paimon.table.files.external_paths import murmur3_32


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0), (b"abc", 0xB3DD93FA), (b"Hello, world!", 0xC0363E43),
        (b"The quick brown fox jumps over the lazy dog", 0x2E4FF723),
    ],
)  # fmt: skip
def test_published_values(data: bytes, expected: int) -> None:
    assert murmur3_32(data) == expected

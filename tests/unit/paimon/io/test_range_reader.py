import io

from ingestd.paimon.io.range_reader import RangeReader


class Letters(RangeReader):
    def __init__(self, text: bytes) -> None:
        super().__init__(len(text))
        self.text = text
        self.asked: list[tuple[int, int]] = []

    def read_range(self, start: int, length: int) -> bytes:
        self.asked.append((start, length))
        return self.text[start : start + length]


def test_each_read_is_one_range_and_none_goes_beyond_the_end() -> None:
    letters = Letters(b"abcdefgh")
    assert letters.read(3) == b"abc"
    assert letters.seek(-2, io.SEEK_END) == 6
    assert letters.read(9) == b"gh"
    assert letters.read(1) == b""
    assert letters.seek(-20, io.SEEK_CUR) == 0
    assert (letters.read(), letters.tell()) == (b"abcdefgh", 8)
    assert letters.asked == [(0, 3), (6, 2), (0, 8)]

import pytest

from ingestd.wording import counted


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (2048, "key", "2,048 keys"),
        (2, "directory", "2 directories"),
        (3, "batch", "3 batches"),
    ],
)
def test_things_are_counted_in_words(number: int, thing: str, text: str) -> None:
    assert counted(number, thing) == text

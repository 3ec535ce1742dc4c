import pytest

from ingestd.wording import counted, utc_text


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


def test_times_are_iso_8601_in_utc_and_rounded_down() -> None:
    assert utc_text(1_700_000_000.9996) == "2023-11-14T22:13:20Z"
    assert utc_text(1_700_000_000.9996, "milliseconds") == "2023-11-14T22:13:20.999Z"

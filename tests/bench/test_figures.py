"""Up to where a run counts: what readers see, and not what is only put in order afterwards."""

import pytest

from bench.figures import brings_news


@pytest.mark.parametrize(
    ("document", "news"),
    [
        ({"commitKind": "APPEND"}, True),
        ({"commitKind": "OVERWRITE"}, True),
        ({"commitKind": "COMPACT"}, False),
        ({"commitKind": "COMPACT", "changelogRecordCount": 0}, False),
        ({"commitKind": "COMPACT", "changelogRecordCount": 3}, True),
    ],
)
def test_only_rows_and_changes_are_news(document: dict[str, object], news: bool) -> None:
    assert brings_news(document) is news

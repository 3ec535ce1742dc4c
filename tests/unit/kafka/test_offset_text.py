"""Offsets as people write them."""

import pytest

from ingestd.errors import ConfigError
from ingestd.kafka.offset_text import offsets_text, parse_offsets


def test_a_text_names_topic_partition_and_offset() -> None:
    found = parse_offsets("shop.a:0:42; shop.a/1:7;b-c_d:3:0;")
    assert found == {"shop.a": {0: 42, 1: 7}, "b-c_d": {3: 0}}


def test_the_form_of_flink_means_the_only_topic() -> None:
    assert parse_offsets("partition:0,offset:42;partition:1, offset:7", ["t"]) == {
        "t": {0: 42, 1: 7}
    }


@pytest.mark.parametrize("topics", [[], ["t", "u"]])
def test_the_form_of_flink_is_refused_where_the_topic_is_not_clear(topics: list[str]) -> None:
    with pytest.raises(ConfigError, match="does not name its topic"):
        parse_offsets("partition:0,offset:42", topics)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t:0", "'t:0' is not a position in a topic: write TOPIC:PARTITION:OFFSET"),
        ("t:0:-1", "is not a position in a topic"),
        ("t:x:1", "is not a position in a topic"),
        ("t:0:1;t:0:2", "names partition 0 of t twice"),
        (" ; ", "contains no offset"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_offsets(text)


def test_a_map_becomes_the_text_that_is_read_back() -> None:
    document = {"a": {"0": "4", "1": "5"}, "b": {"7": "0"}}
    assert parse_offsets(offsets_text(document)) == {"a": {0: 4, 1: 5}, "b": {7: 0}}

"""What answers about logs mean; no broker."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ingestd.cdc.base import record_checksum
from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.kafka import log_checks
from ingestd.kafka.log_checks import divergences, fingerprints
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.records import TopicAndPartition

SOURCE = KafkaSource("shop", ("a",), properties={"bootstrap.servers": "127.0.0.1:1"})
RESET = KafkaError._AUTO_OFFSET_RESET
CUT = (
    "Partition log truncation detected at offset 9 (leader epoch 1): broker end offset is {} "
    "(offset leader epoch 1). Reset to INVALID.: Local: Partition log truncation detected"
)
EXPIRED = (
    "fetch failed due to requested offset not available on the broker: Broker: Offset out of range"
)


def answer(
    monkeypatch: pytest.MonkeyPatch, *errors: KafkaError | None
) -> dict[TopicAndPartition, int]:
    """The divergences when each log answers so."""
    positions = {("a", number): (9, 1) for number in range(len(errors))}

    def answers(
        source: object, asked: Mapping[TopicAndPartition, object], _: float
    ) -> Iterator[Any]:
        for place in asked:
            error = errors[place[1]]
            yield place, SimpleNamespace(error=lambda error=error: error)

    monkeypatch.setattr(log_checks, "_first_responses", answers)
    return divergences(SOURCE, positions, 30)


def test_answers_distinguish_cut_logs_from_expired_and_whole_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = answer(
        monkeypatch,
        KafkaError(RESET, CUT.format(4)),
        KafkaError(RESET, EXPIRED),
        KafkaError(KafkaError._PARTITION_EOF),
        None,
        KafkaError(RESET, CUT.format(-1)),
        KafkaError(KafkaError.OFFSET_OUT_OF_RANGE),
    )
    assert found == {("a", 0): 4, ("a", 4): -1}


@pytest.mark.parametrize("text", [CUT.replace("broker end offset is", "it ends at"), "new words"])
def test_an_answer_that_is_not_understood_is_an_error(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with pytest.raises(SourceError, match=r"whether the log of a/0 of source shop"):
        answer(monkeypatch, KafkaError(RESET, text))


def test_silent_brokers_and_properties_that_do_not_do_are_reported() -> None:
    silence = r"log of a/0 and 1 more of source shop: 127\.0\.0\.1:1 did not respond for 0 s"
    with pytest.raises(SourceSilentError, match=silence):
        divergences(SOURCE, {("a", 0): (9, 1), ("a", 1): (9, 1)}, 0.1)
    with pytest.raises(SourceSilentError, match=r"log of a/0 of source shop"):
        fingerprints(SOURCE, {("a", 0): 9}, 0.1)
    wrong = KafkaSource("shop", ("a",), properties={**SOURCE.properties, "fetch.min.bytes": "x"})
    with pytest.raises(ConfigError, match=r"sources\.shop\.kafka"):
        divergences(wrong, {("a", 0): (9, 1)}, 30)


def test_every_field_of_a_record_counts_and_missing_is_not_empty() -> None:
    records = [(1, b"k", b"v"), (2, b"k", b"v"), (1, b"kv", b""), (1, b"", b"kv"), (1, b"kv", None)]
    records += [(1, None, b"kv"), (1, b"", b""), (1, None, None), (-1, None, None)]
    assert len({record_checksum(*record) for record in records}) == len(records)
    assert (
        record_checksum(5, b"k", b"v") == 1850073114
    )  # kept in tables, so the same in all versions

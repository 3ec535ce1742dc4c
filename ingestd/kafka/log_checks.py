"""Check by leader epochs and by the last record read whether logs have lost or replaced records.

If a consumer is assigned an offset with the leader epoch under which the offset was reached, the
broker compares both with its log before it returns records (OffsetForLeaderEpoch). A broker
restored from a backup of its metadata may use the same epochs again; then only the record itself
shows the difference.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from ingestd.cdc.base import record_checksum
from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.consumer_pool import LOG
from ingestd.kafka.properties import KafkaSource, consumer_properties
from ingestd.kafka.records import TopicAndPartition
from ingestd.kafka.tokens import with_token_function

NO_EPOCH = -1
# One record of each partition is needed. The client increases the size by itself if the first
# record batch is larger.
_SMALL = {"fetch.message.max.bytes": "16384", "queued.max.messages.kbytes": "1024"}
_POLL_SECONDS = 0.02
_POLL_MESSAGES = 500
_ANSWERS = frozenset(
    {
        KafkaError._PARTITION_EOF,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._LOG_TRUNCATION,
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)
"""Errors that describe the state of a log; the client retries after all other errors."""
_TRUNCATED = KafkaError(KafkaError._LOG_TRUNCATION).str()
_OUT_OF_RANGE = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE).str()
_EPOCH_END = re.compile(r"broker end offset is (?P<offset>-?\d+)")


def divergences(
    source: KafkaSource, positions: Mapping[TopicAndPartition, tuple[int, int]], seconds: float
) -> dict[TopicAndPartition, int]:
    """Return the offset from which a log differs from the records that were read, by log.

    `positions` maps (topic, partition) to the (offset, leader epoch) up to which the partition was
    read. Only topic partitions that diverge are in the result, with -1 if the broker does not know
    the epoch. A log that begins after an offset, because older records have expired, has not
    diverged. Raises SourceSilentError if no response arrives for `seconds`, SourceError for an
    unexpected response or if the brokers reject the client, and ConfigError for invalid properties.
    """
    ends: dict[TopicAndPartition, int] = {}
    for partition, message in _first_responses(source, positions, seconds):
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            continue
        end = _epoch_end(source, partition, error)
        if end is not None:
            ends[partition] = end
    return ends


def fingerprints(
    source: KafkaSource, offsets: Mapping[TopicAndPartition, int], seconds: float
) -> dict[TopicAndPartition, int]:
    """Return the checksum of the record just before each offset, if the log still has the record.

    Offsets after a transaction marker, or after a record removed by retention or compaction, have
    no entry. Raises SourceSilentError if no response arrives for `seconds`, SourceError if the
    brokers reject the client, and ConfigError for invalid properties.
    """
    checksums: dict[TopicAndPartition, int] = {}
    positions = {partition: (offset - 1, NO_EPOCH) for partition, offset in offsets.items()}
    for partition, message in _first_responses(source, positions, seconds):
        if message.error() is None and message.offset() == offsets[partition] - 1:
            key, value = _bytes(message.key()), _bytes(message.value())
            checksums[partition] = record_checksum(message.timestamp()[1], key, value)
    return checksums


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _epoch_end(source: KafkaSource, partition: TopicAndPartition, error: KafkaError) -> int | None:
    """Return the offset at which the epoch of a position ends in a truncated log.

    Returns -1 if the log does not know the epoch, and None if the log is not truncated.

    Without an automatic offset reset, the client reports a truncated log and an expired offset by
    the same code. Only the text of the error, which also contains the offset, distinguishes them.
    Raises SourceError for any other error.
    """
    text = error.str()
    end = _EPOCH_END.search(text)
    if _TRUNCATED in text and end is not None:
        return int(end["offset"])
    if error.code() == KafkaError.OFFSET_OUT_OF_RANGE or _OUT_OF_RANGE in text:
        return None
    where = f"{partition[0]}/{partition[1]} of source {source.name}"
    raise SourceError(f"cannot determine whether the log of {where} was truncated: {text}")


def _first_responses(
    source: KafkaSource, positions: Mapping[TopicAndPartition, tuple[int, int]], seconds: float
) -> Iterator[tuple[TopicAndPartition, Message]]:
    """Yield each topic partition and the first message at its position.

    A message is a record or an error of `_ANSWERS`. Raises SourceSilentError if no message arrives
    for `seconds`, SourceError if the brokers reject the client.
    """
    client_errors = ClientErrors(source)
    pending = set(positions)
    with closing(_connect(source, client_errors)) as consumer:
        consumer.assign(
            [_assigned(partition, *positions[partition]) for partition in sorted(pending)]
        )
        deadline = time.monotonic() + seconds
        while pending:
            responded = []
            for message in consumer.consume(_POLL_MESSAGES, _POLL_SECONDS):
                partition = (message.topic() or "", _number(message.partition()))
                error = message.error()
                if error is not None and error.code() not in _ANSWERS:
                    client_errors.note(error)
                elif partition in pending:
                    pending.remove(partition)
                    responded.append(TopicPartition(*partition))
                    yield partition, message
            if responded:
                consumer.pause(responded)
                deadline = time.monotonic() + seconds
            elif client_errors.rejection_reason is not None or time.monotonic() > deadline:
                raise _no_response_error(source, pending, client_errors, seconds)


def _number(partition: int | None) -> int:
    return -1 if partition is None else partition


def _assigned(partition: TopicAndPartition, offset: int, epoch: int) -> TopicPartition:
    if epoch < 0:
        return TopicPartition(*partition, offset)
    return TopicPartition(*partition, offset, leader_epoch=epoch)


def _no_response_error(
    source: KafkaSource,
    pending: set[TopicAndPartition],
    client_errors: ClientErrors,
    seconds: float,
) -> SourceError:
    topic, partition = min(pending)
    more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
    what = f"cannot read the log of {topic}/{partition}{more} of source {source.name}"
    if client_errors.rejection_reason is not None:
        return SourceError(f"{what}: {explain(source, client_errors.rejection_reason)}")
    newest = client_errors.newest
    clause = "" if newest is None else f"; the client reports: {explain(source, newest)}"
    return SourceSilentError(
        f"{what}: {source.bootstrap} did not respond for {seconds:.0f} s{clause}"
    )


def _connect(source: KafkaSource, client_errors: ClientErrors) -> Consumer:
    properties = {**consumer_properties(source), **_SMALL}
    with refused_properties(source):
        settings = with_token_function(source, properties)
        return Consumer({**settings, "error_cb": client_errors.note}, logger=LOG)

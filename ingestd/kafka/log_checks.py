"""Whether logs still have what was read of them: by leader epochs, and by their last records.

A consumer that is assigned an offset together with the leader epoch under which it was reached has
the broker compare both before it fetches (OffsetForLeaderEpoch). A broker that was restored with
its metadata may count epochs again; then only the record itself tells.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from zlib import crc32

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.consumers import LOG
from ingestd.kafka.properties import KafkaSource, consumer_properties
from ingestd.kafka.refusals import Heard, explain

Place = tuple[str, int]
"""Topic and partition."""

UNKNOWN_DIVERGENCE = -1
_SMALL = {"fetch.message.max.bytes": "65536", "queued.max.messages.kbytes": "1024"}
_POLL_SECONDS = 0.2
_POLL_MESSAGES = 1_000
_BROKER_END = re.compile(r"broker end offset is (-?\d+)")


def fingerprint(timestamp: int, key: bytes | None, value: bytes | None) -> int:
    """Return a checksum of a record, from 1 to 2^32 - 1; `timestamp` in milliseconds."""
    start = crc32(b"%d %d %d" % (timestamp, key is not None, value is not None))
    return crc32(value or b"", crc32(key or b"", start)) or 1


def divergences(
    source: KafkaSource, positions: Mapping[Place, tuple[int, int]], seconds: float
) -> dict[Place, int]:
    """Return where logs diverge from (offset, leader epoch) pairs that were reached in them.

    Only places whose log diverges are in the answer; -1 where the broker knows no epoch as old.
    Raises SourceSilentError if brokers do not answer within `seconds`, SourceError if they do not
    let the client in.
    """
    found: dict[Place, int] = {}

    def take(place: Place, message: Message) -> None:
        error = message.error()
        if error is not None and error.code() == KafkaError._LOG_TRUNCATION:
            end = _BROKER_END.search(error.str())
            found[place] = int(end.group(1)) if end else UNKNOWN_DIVERGENCE

    _first_messages(source, positions, seconds, take)
    return found


def fingerprints(
    source: KafkaSource, offsets: Mapping[Place, int], seconds: float
) -> dict[Place, int]:
    """Return checksums of the records just before some offsets, where the logs have these records.

    Retention, compaction and transaction markers leave none. Raises as `divergences`.
    """
    found: dict[Place, int] = {}

    def take(place: Place, message: Message) -> None:
        if message.error() is None and message.offset() == offsets[place] - 1:
            key, value = _bytes(message.key()), _bytes(message.value())
            found[place] = fingerprint(message.timestamp()[1], key, value)

    _first_messages(source, {at: (one - 1, -1) for at, one in offsets.items()}, seconds, take)
    return found


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _first_messages(
    source: KafkaSource,
    positions: Mapping[Place, tuple[int, int]],
    seconds: float,
    take: Callable[[Place, Message], None],
) -> None:
    """Hand on the first thing that a consumer says of each place: a record, an end, an error."""
    left = set(positions)
    deadline = time.monotonic() + seconds
    with _consumer(source) as (consumer, heard):
        consumer.assign([_assigned(place, *positions[place]) for place in sorted(left)])
        while left:
            for message in consumer.consume(_POLL_MESSAGES, _POLL_SECONDS):
                place = (message.topic() or "", _number(message.partition()))
                if place not in left or _is_passing(message.error()):
                    continue
                take(place, message)
                left.discard(place)
                consumer.incremental_unassign([TopicPartition(*place)])
            if left and heard.refusal is not None:
                raise SourceError(f"source {source.name}: {explain(source, heard.refusal)}")
            if left and time.monotonic() > deadline:
                topic, partition = min(left)
                raise SourceSilentError(
                    f"source {source.name}: {source.bootstrap} said nothing of {topic}/{partition} "
                    f"within {seconds:.0f} s, when its log was compared with what was read"
                )


def _number(partition: int | None) -> int:
    return -1 if partition is None else partition


def _assigned(place: Place, offset: int, epoch: int) -> TopicPartition:
    if epoch < 0:
        return TopicPartition(*place, offset)
    return TopicPartition(*place, offset, leader_epoch=epoch)


def _is_passing(error: KafkaError | None) -> bool:
    """Whether the client reports something that heals by itself."""
    return error is not None and error.code() not in (
        KafkaError._PARTITION_EOF,
        KafkaError._LOG_TRUNCATION,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.OFFSET_OUT_OF_RANGE,
    )


@contextmanager
def _consumer(source: KafkaSource) -> Iterator[tuple[Consumer, Heard]]:
    heard = Heard(source)
    properties = {**consumer_properties(source), **_SMALL, "error_cb": heard.note}
    try:
        consumer = Consumer(properties, logger=LOG)
    except KafkaException as error:
        raise SourceError(f"source {source.name}: {error.args[0].str()}") from error
    try:
        yield consumer, heard
    finally:
        consumer.close()

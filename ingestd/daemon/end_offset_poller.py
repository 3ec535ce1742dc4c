"""Poll the end offsets of topics in a separate thread, for lag and readiness."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from ingestd.daemon.status import Status
from ingestd.errors import IngestdError
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.offsets import OffsetClient, TopicPartitions
from ingestd.kafka.properties import KafkaSource

_LOG = logging.getLogger(__name__)
_INTERVAL_SECONDS = 5.0
_REQUEST_SECONDS = 10.0


class LagCluster(Protocol):
    """The requests to a Kafka cluster that determine lag; `OffsetClient` implements them.

    Methods raise SourceError if the brokers do not respond.
    """

    def list_topic_partitions(self) -> TopicPartitions:
        """Return the partitions of the topics that the source selects."""

    def end_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """Return the end offsets of topic partitions: their last stable offsets."""


def _connect(source: KafkaSource) -> LagCluster:
    return OffsetClient(source, request_seconds=_REQUEST_SECONDS)


class EndOffsetPoller:
    """A thread that polls the end offsets of all sources in turn, with a pause of 5 seconds.

    After a failure, a source gets a new client at its next poll. Each time that all sources have
    been polled, the thread adds a sample to the history and calls `sampled`. `connect` returns the
    client of a source.
    """

    def __init__(
        self,
        sources: Mapping[str, KafkaSource],
        status: Status,
        connect: Callable[[KafkaSource], LagCluster] = _connect,
        sampled: Callable[[], None] = lambda: None,
    ) -> None:
        self._sources = sources
        self._status = status
        self._connect = connect
        self._sampled = sampled
        self._clusters: dict[str, tuple[KafkaSource, LagCluster]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)

    def follow(self, sources: Mapping[str, KafkaSource]) -> None:
        """Poll these sources, by name, from the next round on, instead of the earlier ones."""
        self._sources = sources

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop polling, without waiting for a request in progress."""
        self._stopping.set()

    def poll_all(self) -> None:
        """Poll every source once, and set its end offsets or its error in the status."""
        for name, source in list(self._sources.items()):
            try:
                ends = self._poll(name, source)
            except IngestdError as error:
                self._clusters.pop(name, None)
                if self._status.source_went_silent(name, error.message):
                    context = {"source": name, "error": error.message}
                    _LOG.warning("source_unreachable", extra={"ctx": context})
            else:
                self._status.source_answered(name, ends)

    def _poll(self, name: str, source: KafkaSource) -> TopicOffsets:
        known, cluster = self._clusters.get(name, (None, None))
        if cluster is None or known != source:
            cluster = self._connect(source)
            self._clusters[name] = source, cluster
        return cluster.end_offsets(cluster.list_topic_partitions())

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.poll_all()
            self._status.sample()
            self._sampled()
            self._stopping.wait(_INTERVAL_SECONDS)

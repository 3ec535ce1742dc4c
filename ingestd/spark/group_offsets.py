"""Kafka's group offsets after a batch: a hint for lag tools, never read back."""

import logging
from collections.abc import Mapping

from ingestd.errors import SourceError
from ingestd.ingest.settings.context import SourceSettings
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.ranges import Offsets

_LOG = logging.getLogger(__name__)
_REQUEST_SECONDS = 5.0


class GroupOffsets:
    """Writes offsets to the group of each source; a failure is only logged."""

    def __init__(self, sources: Mapping[str, SourceSettings]) -> None:
        self._sources = sources
        self._clients: dict[str, OffsetClient] = {}

    def publish(self, until: Offsets) -> None:
        """Write the next offset of every topic partition."""
        for name, topics in until.items():
            try:
                client = self._client(name)
                client.commit_group_offsets(client.source.group, topics)
            except SourceError as error:
                _LOG.warning("group_offsets_not_written", extra={"ctx": {"error": str(error)}})

    def close(self) -> None:
        """Let go of the brokers; what is published later opens clients anew."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _client(self, name: str) -> OffsetClient:
        if name not in self._clients:
            kafka = self._sources[name].kafka
            self._clients[name] = OffsetClient(kafka, request_seconds=_REQUEST_SECONDS)
        return self._clients[name]

"""Kafka's group offsets after a batch: a hint for lag tools, never read back."""

import logging
from collections.abc import Mapping

from ingestd.errors import SourceError
from ingestd.ingest.context import SourceSettings
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
                self._client(name).commit_group_offsets(self._group(name), topics)
            except SourceError as error:
                _LOG.warning("group_offsets_not_written", extra={"ctx": {"error": str(error)}})

    def _client(self, name: str) -> OffsetClient:
        if name not in self._clients:
            kafka = self._sources[name].kafka
            self._clients[name] = OffsetClient(kafka, request_seconds=_REQUEST_SECONDS)
        return self._clients[name]

    def _group(self, name: str) -> str:
        return self._sources[name].kafka.properties.get("group.id", f"ingestd-{name}")

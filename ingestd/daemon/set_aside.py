"""Topics and topic partitions that the run under way has set aside, for the pages."""

import threading
from typing import Any

from ingestd.ingest.settings.topic_trial import SetAside
from ingestd.kafka.ranges import OffsetRange
from ingestd.log import redact


class SetAsidePage:
    """What is shown of them, by source and topic; any thread may ask and tell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, dict[str, dict[str, Any]]] = {}

    def clear(self) -> None:
        """A run begins, which reads every topic again."""
        with self._lock:
            self._topics.clear()

    def add(self, topic: SetAside, message: str) -> None:
        """A topic is read no more in this run."""
        shown = {
            "looks_like": topic.guess.data_format,
            "offsets": {str(one): at for one, at in sorted(topic.offsets.items())},
            "message": redact(message),
        }
        with self._lock:
            self._topics.setdefault(topic.source, {})[topic.topic] = shown

    def add_partition(self, left: OffsetRange, message: str) -> None:
        """A topic partition is read no more in this run."""
        with self._lock:
            of_source = self._topics.setdefault(left.source, {})
            offsets = of_source.get(left.topic, {}).get("offsets", {})
            of_source[left.topic] = {
                "looks_like": None,
                "offsets": {**offsets, str(left.partition): left.start},
                "message": redact(message),
            }

    def document(self, source: str) -> dict[str, Any]:
        """The topics of a source, for /status."""
        with self._lock:
            return dict(self._topics.get(source, {}))

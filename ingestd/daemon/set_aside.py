"""Topics that the run under way has set aside, for the pages."""

from typing import Any

from ingestd.ingest.settings.topic_trial import SetAside
from ingestd.log import redact


class SetAsidePage:
    """What is shown of them, by source and topic; not locked."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, dict[str, Any]]] = {}

    def clear(self) -> None:
        """A run begins, which reads every topic again."""
        self._topics.clear()

    def add(self, topic: SetAside, message: str) -> None:
        """A topic is read no more in this run."""
        self._topics.setdefault(topic.source, {})[topic.topic] = {
            "looks_like": topic.guess.data_format,
            "offsets": {str(one): at for one, at in sorted(topic.offsets.items())},
            "message": redact(message),
        }

    def document(self, source: str) -> dict[str, Any]:
        """The topics of a source, for /status."""
        return dict(self._topics.get(source, {}))

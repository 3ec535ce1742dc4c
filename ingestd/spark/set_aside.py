"""Topics that a run reads no more, because their records cannot be used."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from ingestd.errors import PolicyStopError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.topic_trial import SetAside, Topic, TopicTrial
from ingestd.ingest.upkeep.batch_summary import BatchListener
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.ranges import OffsetRange, starts_of

_LOG = logging.getLogger(__name__)


class SetAsideTopics:
    """The topics that one run has set aside."""

    def __init__(self, settings: PipelineSettings, listener: BatchListener) -> None:
        self._settings = settings
        self._listener = listener
        self._trial = TopicTrial(settings.trial_limits)
        self._found: dict[Topic, SetAside] = {}

    @property
    def topics(self) -> frozenset[Topic]:
        """The topics, by source and name."""
        return frozenset(self._found)

    def judge(self, counts: Counts, ranges: Iterable[OffsetRange]) -> bool:
        """Judge what a batch read, before anything of it is committed.

        Whether topics are set aside now: then the batch has to run again without them.
        """
        found = self._trial.judge(counts)
        starts = starts_of(ranges)
        for one in found:
            offsets = {
                partition: offset
                for (source, topic, partition), offset in starts.items()
                if (source, topic) == (one.source, one.topic)
            }
            self._add(replace(one, offsets=offsets))
        return bool(found)

    def refuse_end(self) -> None:
        """PolicyStopError if there are any: a run that ends by itself has not read all."""
        if self._found:
            raise PolicyStopError("; ".join(map(self._message, self._found.values())))

    def _add(self, one: SetAside) -> None:
        self._found[one.source, one.topic] = one
        place = {"source": one.source, "topic": one.topic, "offsets": dict(one.offsets)}
        seen = {"records": one.records, "rejected": one.rejected}
        like = {"looks_like": one.guess.data_format, "message": self._message(one)}
        _LOG.error("topic_set_aside", extra={"ctx": {**place, **seen, **like}})
        self._listener.topic_set_aside(one, self._message(one))

    def _message(self, one: SetAside) -> str:
        return one.message(self._settings.sources[one.source].data_format)

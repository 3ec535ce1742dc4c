"""The health of a pipeline in words, from the document of /status."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ingestd.daemon.samples import total_lag
from ingestd.daemon.status import NOT_READY, NotReady

Document = Mapping[str, Any]


class Level(StrEnum):
    """The severity of a condition, which determines its colour in the console.

    GOOD needs no attention, WAIT is temporary or requested, and BAD needs an operator.
    """

    GOOD = "good"
    WAIT = "wait"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Condition:
    """A fact about a pipeline that an operator should know.

    `runbook` is the heading in docs/alerts.md with the first steps, or None.
    """

    level: Level
    text: str
    runbook: str | None = None


def conditions(status: Document) -> list[Condition]:
    """Return the conditions that an operator should know, with level BAD first.

    If there are none, the only condition states what the pipeline does.
    """
    found = [*_of_pipeline(status), *_of_sources(status), *_of_maintenance(status)]
    found.sort(key=lambda condition: condition.level is not Level.BAD)
    return found or [_doing(status)]


def _of_pipeline(status: Document) -> Iterator[Condition]:
    state, error = status["state"], status["last_error"]
    if state == "failed":
        yield Condition(Level.BAD, "The pipeline has ended: " + _because(error), "Symptoms")
    elif state == "backoff":
        yield Condition(
            Level.BAD, "The query ended and will be started again: " + _because(error), "Symptoms"
        )
    elif state == "draining":
        yield Condition(Level.WAIT, "The pipeline ends after the batch in progress.")
    elif state == "stopped":
        yield Condition(Level.WAIT, "The pipeline has stopped, as requested.")
    elif not status["live"]:
        text = "No progress: the daemon does not finish its batch or its poll."
        yield Condition(Level.BAD, text, "IngestdNoBatch")
    elif status["not_ready"] == NotReady.NO_EXECUTORS:
        yield Condition(Level.BAD, f"{NOT_READY[NotReady.NO_EXECUTORS]}.", "Symptoms")


def _because(error: Document | None) -> str:
    return "no reason is known." if error is None else f"{error['type']}: {error['message']}"


def _of_sources(status: Document) -> Iterator[Condition]:
    for name, source in status["sources"].items():
        if source["reachable"] is False:
            text = (
                f"Source {name} does not respond, so its lag is unknown; ingestion continues by "
                f"itself when it does. {source['error'] or ''}"
            )
            yield Condition(Level.BAD, text.strip(), "IngestdSourceUnreachable")
        for topic, aside in source["set_aside"].items():
            partitions = ", ".join(aside["offsets"])
            text = f"Topic {topic} of source {name} is set aside, partitions {partitions}: "
            rule = "IngestdPartitionUnreadable" if aside["unreadable"] else "IngestdTopicSetAside"
            yield Condition(Level.BAD, text + aside["message"], rule)


def _of_maintenance(status: Document) -> Iterator[Condition]:
    cause = status["maintenance"].get("throttled_by")
    if cause:
        text = f"Batches wait for compactions ({cause})."
        yield Condition(Level.WAIT, text, "IngestdCompactionBehind")


def _doing(status: Document) -> Condition:
    """Return what the pipeline does, as a condition."""
    lag = total_lag(status["sources"])
    if status["state"] == "starting":
        return Condition(Level.WAIT, "The query is starting.")
    if status["not_ready"] == NotReady.NO_BATCH or lag is None:
        return Condition(Level.WAIT, "Running; the lag is not known yet.")
    if not lag:
        rejected = " or are dead letters" if status["recent"]["rejected"] else ""
        return Condition(Level.GOOD, f"All records of the topics are in the tables{rejected}.")
    return Condition(Level.GOOD, f"Reading: {lag:,} records are not in the tables yet.")

"""Send the records of dead letters to Kafka again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pyarrow as pa
import typer

from ingestd.cli.dead_letters import DeadLetterFilter, DeadLetters
from ingestd.cli.groups import now_ms
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.dead_letters.dead_letter_topic import record_headers
from ingestd.ingest.dead_letters.replays import COORDINATES, ReplayPosition
from ingestd.kafka.producer import Outgoing, produce
from ingestd.kafka.properties import KafkaSource

ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The pipeline's configuration, which has the clusters."),
]
Bootstrap: TypeAlias = Annotated[
    str | None, typer.Option("--bootstrap", help="Brokers, HOST:PORT,..., instead of --config.")
]
Target: TypeAlias = Annotated[
    str | None, typer.Option("--to-topic", help="Send to this topic instead of the original one.")
]
_RECORD = ("key", "value", "headers")


@dataclass(frozen=True, slots=True)
class ReplayCluster:
    """The Kafka clusters to which dead letters are sent again.

    `sources` maps sources to their Kafka settings. If `bootstrap` is set, these brokers are used
    for all sources instead.
    """

    sources: Mapping[str, KafkaSource] = field(default_factory=dict)
    bootstrap: str | None = None

    def of(self, source: str) -> KafkaSource:
        """Return the Kafka settings for a source.

        Raises ConfigError if `bootstrap` is not set and the source is unknown.
        """
        if self.bootstrap is not None:
            return KafkaSource(source, (), properties={"bootstrap.servers": self.bootstrap})
        if source not in self.sources:
            raise ConfigError(
                f"the configuration has no source '{source}', which dead letters came from; choose "
                "others by --source, or give --bootstrap HOST:PORT instead of --config"
            )
        return self.sources[source]


@dataclass(slots=True)
class Replayed:
    """The options of a replay of dead letters, and its counts.

    `again` also sends dead letters that were replayed before, `dry_run` sends nothing. `topics`
    counts the records sent by topic. `before` counts the dead letters that were left out because
    they were replayed before, `empty` those without key and value. `positions` are the original
    coordinates of the records sent.
    """

    again: bool = False
    dry_run: bool = False
    before: int = 0
    empty: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    positions: set[ReplayPosition] = field(default_factory=set)

    @property
    def sent(self) -> int:
        """The number of records that were sent, or in a dry run would be sent."""
        return self.topics.total()

    def document(self) -> dict[str, object]:
        """Return the result of the replay as the JSON document that `--json` prints."""
        return {
            "sent": self.sent,
            "replayed_before": self.before,
            "without_record": self.empty,
            "topics": dict(sorted(self.topics.items())),
        }


def cluster_of(config: Path | None, bootstrap: str | None) -> ReplayCluster:
    """Return the clusters of a configuration file, or the cluster of bootstrap servers.

    Raises ConfigError unless exactly one of them is given, and for an invalid file.
    """
    if (config is None) == (bootstrap is None):
        raise ConfigError("specify the cluster: --config FILE or --bootstrap HOST:PORT")
    if config is None:
        return ReplayCluster(bootstrap=bootstrap)
    settings = pipeline_settings(load_config(config))
    return ReplayCluster({name: source.kafka for name, source in settings.sources.items()})


def replay_all(
    dead_letters: DeadLetters,
    selection: DeadLetterFilter,
    cluster: ReplayCluster,
    to_topic: str | None,
    replayed: Replayed,
) -> Replayed:
    """Send the records of the selected dead letters to Kafka and mark them, file by file.

    Records are sent to their original topic and partition, or to `to_topic`. Updates the counts of
    `replayed` and returns it. Raises ConfigError for a source that `cluster` does not know,
    SourceError if the brokers do not accept the records, PolicyStopError for a record larger than
    the topic allows, and the errors of a commit. The next replay leaves out the dead letters that
    have been marked by then.
    """
    for dead_rows in dead_letters.rows(
        selection, (*COORDINATES, *dead_letters.existing_columns(_RECORD))
    ):
        ordered = dead_rows.sort_by([(name, "ascending") for name in COORDINATES])
        chosen = _chosen(dead_letters, ordered, replayed)
        for (source, topic), rows in chosen.items():
            target = to_topic or topic
            replayed.topics[target] += len(rows)
            if replayed.dry_run:
                continue
            produce(cluster.of(source), target, (_message(row, to_topic) for row in rows))
            dead_letters.replays.mark(map(ReplayPosition.of, rows), target, now_ms())
    return replayed


def _chosen(
    dead_letters: DeadLetters, rows: pa.Table, replayed: Replayed
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the rows to send by source and topic, each record once; count the rows left out."""
    chosen: dict[tuple[str, str], list[dict[str, Any]]] = {}
    marks = dead_letters.replays.marks(rows).tolist()
    for row, marked in zip(rows.to_pylist(), marks, strict=True):
        position = ReplayPosition.of(row)
        if row["key"] is None and row["value"] is None:
            replayed.empty += 1
        elif marked and not replayed.again:
            replayed.before += 1
        elif position not in replayed.positions:
            replayed.positions.add(position)
            chosen.setdefault((position.source, position.topic), []).append(row)
    return chosen


def _message(row: Mapping[str, Any], to_topic: str | None) -> Outgoing:
    partition = row["partition"] if to_topic is None else None
    return Outgoing(row["key"], row["value"], record_headers(row), partition)

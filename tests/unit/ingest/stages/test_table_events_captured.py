"""Renamed and dropped columns of a captured MariaDB stream, with its schema change topic."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from tests.support.captured_chunks import mariadb
from tests.support.corpus import MART
from tests.support.ingest_rig import Rig
from tests.support.state import checkpoints

FOLLOW = TableSettings(
    evolution=EvolutionPolicy(on_rename="rename", on_drop="drop"), options={"bucket": "1"}
)


@dataclass
class CapturedRig(Rig):
    """Runs captured chunks, by topic, as whole ranges."""

    chunks: dict[tuple[str, int], RecordChunk] = field(default_factory=dict)

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        yield self.chunks[wanted.topic, wanted.partition]

    def feed(self, chunks: list[RecordChunk]) -> None:
        for chunk in chunks:
            self.chunks[chunk.topic, chunk.partition] = chunk
            self.produce(*chunk.values, topic=chunk.topic, partition=chunk.partition)
        self.run()


def streams() -> tuple[list[RecordChunk], list[RecordChunk]]:
    """The schema change topic, and those of tables."""
    found = mariadb()
    return (
        [one for one in found if "." not in one.topic],
        [one for one in found if one.topic.endswith(".goods")],
    )


@pytest.mark.parametrize("order", ["together", "data again"])
def test_table_ends_with_the_columns_and_values_of_the_database(order: str) -> None:
    statements, data = streams()
    rig = CapturedRig(data_format="debezium-json", defaults=FOLLOW)
    rig.feed([*statements, *data])
    if order == "data again":
        rig.committed.clear()
        rig.run()
    wanted = checkpoints(MART)[-1].tables["martdb.goods"]
    schema = rig.tables["lake.goods"].schema
    names = [column.name for column in schema.fields]
    assert sorted(names) == sorted(wanted.rows[0])
    assert "c" not in names and "tx" not in names
    found = {row["id"]: row["c_renamed"] for row in rig.rows("goods", "id", "c_renamed")}
    assert found == {row["id"]: row["c_renamed"] for row in wanted.rows}


def test_without_being_asked_old_columns_stay() -> None:
    statements, data = streams()
    rig = CapturedRig(data_format="debezium-json", defaults=TableSettings(options={"bucket": "1"}))
    rig.feed([*statements, *data])
    names = {column.name for column in rig.tables["lake.goods"].schema.fields}
    assert {"c", "c_renamed", "tx"} <= names

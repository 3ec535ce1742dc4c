"""The end offsets are taken after the connector has passed the source's position, not before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ingestd.compare import postgres
from ingestd.compare.catch_up import CatchUpTimeouts, ChangeStream
from ingestd.compare.dialect import SqlDialect
from ingestd.compare.replication_slot import ReplicationSlot
from ingestd.errors import ConfigError, SourceError
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.progress import PipelineProgress, TableProgress
from ingestd.ingest.tables.registry_opening import OpenedTables

TIMEOUTS = CatchUpTimeouts(connector=10, table=100)


@dataclass
class World:
    """A source, a broker with one topic of a table and another one, and the table; and a clock."""

    slots: dict[str, bool] = field(default_factory=dict)
    end: int = 10
    covered: int = 10
    active: bool = True
    confirmed: str = "0/1"
    seconds: float = 0.0
    events: dict[float, Callable[["World"], None]] = field(default_factory=dict)

    def clock(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        for due in [event for event in self.events if event <= self.seconds]:
            self.events.pop(due)(self)

    @property
    def dialect(self) -> SqlDialect:
        return postgres

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if sql == postgres.POSITION:
            return [("0/AB",)]
        assert (sql, parameters) == (postgres.SLOTS, ("0/AB",))
        return [(name, passed, self.active, self.confirmed) for name, passed in self.slots.items()]

    def close(self) -> None: ...

    def open_tables(self) -> OpenedTables:
        covered = {"key": {0: Position(self.covered)}}
        progress = TableProgress(PipelineProgress(), topic_keys=frozenset(["key"]))
        no_state: Any = None
        one = ManagedTable(no_state, no_state, progress, covered)
        return OpenedTables({"ods.orders": one}, PipelineProgress(), (), {})

    def list_topic_partitions(self) -> dict[str, tuple[int, ...]]:
        return {"orders": (0,), "items": (0,)}

    def topic_keys(self, topics: list[str]) -> dict[str, str]:
        return {topic: {"orders": "key", "items": "other"}[topic] for topic in topics}

    def cluster_id(self) -> str:
        return "cluster"

    def end_offsets(self, partitions: Any) -> dict[str, dict[int, int]]:
        return {"orders": {0: self.end}, "items": {0: 1_000}}

    def beginning_offsets(self, partitions: Any) -> dict[str, dict[int, int]]:
        return {"orders": {0: 0}, "items": {0: 0}}

    def leader_epochs(self, ends: Any) -> dict[str, dict[int, int]]:
        return {"orders": {0: 0}, "items": {0: 0}}

    def wait(self, slot: str | None = None) -> float:
        clusters: Any = {"shop": self}
        connector = ReplicationSlot(self, slot)
        stream = ChangeStream(
            connector, clusters, self.open_tables, "ods.orders", TIMEOUTS, self.clock, self.sleep
        )
        stream.wait_until_passed()
        return self.seconds


def test_nothing_is_waited_for_if_the_slot_has_passed_and_the_table_covers_all() -> None:
    assert World({"debezium": True}).wait() == 0


def test_records_that_the_connector_writes_meanwhile_are_waited_for() -> None:
    def passes(world: World) -> None:
        world.slots["debezium"] = True
        world.end = 20

    def commits(world: World) -> None:
        world.covered = 20

    world = World({"debezium": False}, events={3.0: passes, 7.0: commits})
    assert world.wait() == 7.0


def test_a_slot_that_moves_is_late_and_not_quiet() -> None:
    def moves(world: World) -> None:
        world.confirmed += "0"

    def passes(world: World) -> None:
        world.slots["debezium"] = True

    late = {float(second): moves for second in range(8, 50, 8)}
    assert World({"debezium": False}, events={**late, 53.0: passes}).wait() == 53.0
    assert World({"debezium": False}, events=dict(late)).wait() == 48 + TIMEOUTS.connector


def test_a_connector_that_does_not_run_is_an_error() -> None:
    with pytest.raises(SourceError, match="has not passed the log position 0/AB"):
        World({"debezium": False}, active=False).wait()


def test_a_slot_that_does_not_move_is_waited_for_as_long_as_the_connector_may_lag() -> None:
    assert World({"debezium": False}).wait() == TIMEOUTS.connector
    assert World().wait() == TIMEOUTS.connector


def test_the_slot_that_is_named_decides() -> None:
    slots = {"debezium": True, "other": False}
    assert World(slots).wait("debezium") == 0
    assert World(slots).wait("other") == TIMEOUTS.connector
    with pytest.raises(ConfigError, match="by --slot: debezium, other"):
        World(slots).wait()
    with pytest.raises(ConfigError, match="no slot mine; its logical slots: debezium, other"):
        World(slots).wait("mine")


def test_a_table_that_does_not_reach_the_end_of_its_topics_is_an_error() -> None:
    with pytest.raises(SourceError, match=r"within 100 s \(3 records left\)"):
        World({"debezium": True}, end=13).wait()

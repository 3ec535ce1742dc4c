"""The whole world of a life: brokers, warehouses, settings, and the numbers that are unique."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.recovery.broker import Key, Log, Topic
from tests.recovery.tables import DEAD_LETTERS, Warehouse

if TYPE_CHECKING:
    from tests.recovery.process import Process


class DiedError(Exception):
    """The process was killed."""


class ReopenError(Exception):
    """The query ends with an error that is retried: the process opens the tables again."""


class StoppedError(Exception):
    """The daemon ended with an exit code that is not 0, for a reason that has a way out."""

    def __init__(self, code: int, reason: str, what: str) -> None:
        super().__init__(f"exit {code}, {reason}: {what}")
        self.code = code
        self.reason = reason
        self.what = what
        self.role = "first"


@dataclass(frozen=True, slots=True)
class Source:
    """A source: the names of topics that it selects, and whether it starts at their ends."""

    name: str
    topics: frozenset[str]
    latest: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of a pipeline; `policy` is what is done about offsets that are lost.

    `topics` are the names of all that its sources select.
    """

    pipeline: str
    sources: tuple[Source, ...]
    warehouse: str = "first"
    formerly: frozenset[str] = frozenset()
    policy: str = "fail"
    rerouted: bool = False
    merge_shards: bool = True
    topics: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        selected: frozenset[str] = frozenset().union(*(source.topics for source in self.sources))
        object.__setattr__(self, "topics", selected)

    @property
    def routing(self) -> tuple[bool, bool]:
        """What decides the table of an event."""
        return self.rerouted, self.merge_shards

    def table_of(self, topic: str, entity: str | None) -> str | None:
        """The table that an event is routed to; None if it is filtered."""
        if entity == "bad":
            return DEAD_LETTERS
        if entity == "x" and self.rerouted:
            return "z"
        if entity == "x" and topic == "b" and not self.merge_shards:
            return "b_x"
        return entity

    def leads_to(self, topic: str, table: str) -> bool:
        """Whether the routing leads a topic to a table."""
        return any(self.table_of(topic, entity) == table for entity in ("x", "y", "bad"))


@dataclass(slots=True)
class World:
    """All there is in a life.

    `settings` and `processes` by role ("first", "second"), `dead_topics` with their names,
    `saved` a copy of the warehouse in use, `off` the rules of the design that are left out,
    `steps_left` the durable steps until the process is killed.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    dead_topics: list[tuple[str, Topic]] = field(default_factory=list)
    warehouses: dict[str, Warehouse] = field(default_factory=dict)
    settings: dict[str, Settings] = field(default_factory=dict)
    processes: dict[str, "Process"] = field(default_factory=dict)
    scratch: dict[str, object] = field(default_factory=dict)
    saved: Warehouse | None = None
    off: frozenset[str] = frozenset()
    numbers: int = 0
    steps_left: int | None = None
    started: set[str] = field(default_factory=set)
    starts: int = 0

    def number(self) -> int:
        """A number that was not given out before."""
        self.numbers += 1
        return self.numbers

    def step(self) -> None:
        """A durable step is done; DiedError if it was the last one of the process."""
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                self.steps_left = None
                raise DiedError

    def produce(self, topic: str, partition: int, *entities: str | None) -> None:
        """Add events to a log."""
        old = self.topics[topic]
        uids = range(self.numbers + 1, self.numbers + 1 + len(entities))
        self.numbers += len(entities)
        log = old.logs[partition] if partition < len(old.logs) else Log()
        self.topics[topic] = old.with_log(partition, log.with_events(uids, entities))

    def warehouse(self, role: str = "first") -> Warehouse:
        """The warehouse of a pipeline as it is configured now."""
        return self.warehouse_of(self.settings[role])

    def warehouse_of(self, settings: Settings) -> Warehouse:
        """The warehouse of a pipeline; an empty one if it is not there."""
        return self.warehouses.setdefault(settings.warehouse, Warehouse())

    def logs(self, settings: Settings) -> Iterator[tuple[str, Key, Log]]:
        """Name of the topic, key and log of each partition that a pipeline selects."""
        selected = settings.topics
        for name, topic in self.topics.items():
            if name in selected:
                number = topic.id
                for partition, log in enumerate(topic.logs):
                    yield name, Key(number, partition), log

    def change(self, role: str, **values: object) -> None:
        """Edit the configuration of a pipeline; a running process goes on with the old one."""
        self.settings[role] = replace(self.settings[role], **values)  # type: ignore[arg-type]

    def copy(self) -> "World":
        """A world that goes its own way from here."""
        world = World(
            dict(self.topics),
            list(self.dead_topics),
            {name: one.copy() for name, one in self.warehouses.items()},
            dict(self.settings),
            {},
            dict(self.scratch),
            self.saved,
            self.off,
            self.numbers,
            self.steps_left,
            set(self.started),
            self.starts,
        )
        world.processes = {role: one.copy(world) for role, one in self.processes.items()}
        return world

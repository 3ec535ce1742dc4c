"""What a start knows: read from the tables, and from the claims file as far as it applies."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tests.recovery.broker import Key, Log, Position
from tests.recovery.tables import DEAD_LETTERS, Claims, Progress, Table, Vector, newest_records
from tests.recovery.world import Settings, StoppedError, World

_BEGINNING = Position(0, 0)


@dataclass(slots=True)
class Memory:
    """What the driver keeps in memory.

    `finished` holds for tables without a record: nothing below it is left to bring. By table:
    `coverage`, `fed`, `base` (token of the snapshot that is built on, 0 for none), `bound` (token
    of the snapshot with the newest record). `overwritten` are tables that others have overwritten,
    `passed` the retired topics by table,
    `rerouted` those whose newest record is of another routing;
    `met` is set while partitions were met that nothing has recorded.
    """

    finished: dict[Key, Position] = field(default_factory=dict)
    origin: dict[Key, Position] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    topics: dict[int, str] = field(default_factory=dict)
    retired: set[int] = field(default_factory=set)
    sequence: int = 0
    coverage: dict[str, dict[Key, Position]] = field(default_factory=dict)
    fed: dict[str, frozenset[int]] = field(default_factory=dict)
    base: dict[str, int] = field(default_factory=dict)
    bound: dict[str, int] = field(default_factory=dict)
    overwritten: set[str] = field(default_factory=set)
    rerouted: set[str] = field(default_factory=set)
    passed: dict[str, frozenset[int]] = field(default_factory=dict)
    met: bool = False

    def copy(self) -> "Memory":
        """A copy of the same driver at the same moment."""
        return Memory(
            dict(self.finished),
            dict(self.origin),
            set(self.names),
            set(self.sources),
            dict(self.topics),
            set(self.retired),
            self.sequence,
            dict(self.coverage),
            dict(self.fed),
            dict(self.base),
            dict(self.bound),
            set(self.overwritten),
            set(self.rerouted),
            dict(self.passed),
            self.met,
        )

    def knows(self, key: Key) -> bool:
        """Whether a partition was ever met."""
        return (
            key in self.finished
            or key in self.origin
            or any(key in vector for vector in self.coverage.values())
        )

    def meet(self, key: Key, log: Log) -> None:
        """A partition of a founded source that was never met begins where its log does now."""
        if self.knows(key):
            return
        self.met = True
        self.finished[key] = Position(log.first, log.epoch)
        if log.first:
            self.origin[key] = self.finished[key]

    def begins(self, key: Key) -> Position:
        """What a vector without the partition means: it came later."""
        return self.origin.get(key, _BEGINNING)

    def covered(self, table: str | None, key: Key) -> Position:
        """How much of a partition a table holds; None for a table that is yet to be."""
        vector = self.coverage.get(table, self.finished) if table else self.finished
        return vector.get(key) or self.origin.get(key, _BEGINNING)


def furthest(one: Vector, other: Vector) -> dict[Key, Position]:
    """The larger offset of each partition."""
    result = dict(one)
    for key, position in other.items():
        known = result.get(key)
        if known is None or known[0] < position[0]:
            result[key] = position
    return result


def newest_record(table: Table, pipelines: Iterable[str], off: frozenset[str]) -> Progress | None:
    """The newest record of the first of the pipelines that has one."""
    if "record-of-any-user" in off:
        kept = tuple(snapshot for snapshot in table.snapshots if snapshot.user in pipelines)
        table = replace(table, snapshots=kept)
    records = newest_records(table, off)
    found: list[Progress] = [records[pipeline] for pipeline in pipelines if pipeline in records]
    return found[0] if found else None


def recall(world: World, settings: Settings) -> Memory:
    """Read the tables and the claims file; StoppedError where they do not say what they should."""
    ours = (settings.pipeline, *settings.formerly)
    found, claims = _read(world, settings)
    records = [value for value in found.values() if value]
    memory = _common(claims, records, world.off)
    for name, table in world.warehouse_of(settings).tables.items():
        _other_pipelines(world, settings, name, table)
        one = found[name]
        memory.base[name] = table.snapshots[-1].token if table.snapshots else 0
        if one is not None:
            _take(memory, claims, name, one, world.off)
            if one.overwritten:
                memory.overwritten.add(name)
            if one.routing != settings.routing:
                memory.rerouted.add(name)
        elif table.snapshots and (
            (table.marks.intersection(ours) and "mark" not in world.off)
            or (name in memory.names and "made-again" in world.off)
        ):
            raise StoppedError(4, "record-lost", name)
    return memory


def common_memory(world: World, settings: Settings) -> Memory:
    """What all tables and the claims file say together, without what is of each table."""
    found, claims = _read(world, settings)
    return _common(claims, [value for value in found.values() if value], world.off)


def _read(world: World, settings: Settings) -> tuple[dict[str, Progress | None], Claims | None]:
    """The newest record of each table, and the first claims file that is whole."""
    warehouse, off = world.warehouse_of(settings), world.off
    ours = (settings.pipeline, *settings.formerly)
    found = {name: newest_record(one, ours, off) for name, one in warehouse.tables.items()}
    files = (warehouse.files.get(f"claims/{name}") for name in ours)
    whole = (file for file in files if file and ("claims-checksum" in off or not file.damaged))
    return found, next(whole, None)


def _common(claims: Claims | None, records: list[Progress], off: frozenset[str]) -> Memory:
    """What all records and the claims say together; names of tables are the newest one's."""
    memory = Memory()
    every: list[Claims | Progress] = [*records, *([claims] if claims else [])]
    for one in every:
        memory.finished = furthest(memory.finished, one.finished)
        memory.topics.update(one.topics)
        memory.retired.update(one.retired)
        memory.sources.update(one.sources)
        for key, position in one.origin.items():
            memory.origin[key] = min(position, memory.origin.get(key, position))
        if one.sequence > memory.sequence:
            memory.sequence, memory.names = one.sequence, set(one.names)
    retired = memory.retired
    memory.finished = {k: v for k, v in memory.finished.items() if k.topic_id not in retired}
    for rule, kept in (
        ("origin", memory.origin),
        ("sources-recorded", memory.sources),
        ("names", memory.names),
    ):
        if rule in off:
            kept.clear()
    return memory


def _take(
    memory: Memory, claims: Claims | None, name: str, record: Progress, off: frozenset[str]
) -> None:
    """Know a table by its newest record, and by the claim on it if there is one that applies."""
    coverage = dict(record.end)
    claimed = claims.whole.get(name) if claims else None
    if claims and (claimed == record.token or (claimed and "claims-bound" in off)):
        coverage = furthest(coverage, claims.finished)
    memory.coverage[name] = coverage
    memory.fed[name] = record.fed
    memory.passed[name] = record.retired
    memory.bound[name] = record.token
    memory.names.add(name)


def _other_pipelines(world: World, settings: Settings, name: str, table: Table) -> None:
    """Stop where another pipeline has brought the table rows of topics that this one reads."""
    if "other-pipeline" in world.off:
        return
    ours = (settings.pipeline, *settings.formerly)
    live = {one.id: topic for topic, one in world.topics.items() if topic in settings.topics}
    for pipeline, record in newest_records(table, world.off).items():
        if pipeline in ours:
            continue
        read = set(record.fed)
        if name == DEAD_LETTERS and "other-pipeline-unfed" not in world.off:
            read.update(record.topics)
        for topic_id in read:
            topic = live.get(topic_id) or record.topics.get(topic_id, "")
            if topic in settings.topics and settings.leads_to(topic, name):
                raise StoppedError(5, "other-pipeline", f"{name} by {pipeline}")

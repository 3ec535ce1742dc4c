"""Every measure of the table of goals: who is measured, how often, and how one run of it goes."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import cluster, own_programs, steady
from bench.figures import Figures, snapshot, snapshot_files
from bench.floors import all_cores, floors
from bench.ingestd_run import run_ingestd
from bench.journal import Record
from bench.latency import Rhythm, measure
from bench.load import COLUMN_TYPES, KEY, Load
from bench.peer_runs import PEER_RUNS, Task
from bench.topics import KEEP_ALL, Topics
from bench.verify import rows_read_by_java, same_rows
from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.schema import new_schema

DYNAMIC = {"bucket": "-1"}
FIXED = {"bucket": "4"}
ONE_BUCKET = {"bucket": "1"}
MANY_TABLES = 100
WRITE_ONLY = {**DYNAMIC, "write-only": "true"}
COLD_CHECKPOINT_SECONDS = 3
SMALL = 1_000
_EXECUTOR_EVENTS = 2_000_000
MOST_EVENTS_A_COMMIT = 500_000
"""The default limit of ingestd for one commit."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a session is: records of a load, changes on top of it, batches of the latencies.

    `read_rows` are the keys of the table that is read, `compacted_rows` those of each of five runs.
    """

    events: int = 1_000_000
    large: int = 5_000_000
    changes: int = 200_000
    latency_batches: int = 120
    tiny_batches: int = 60
    read_rows: int = 5_000_000
    compacted_rows: int = 1_000_000
    growth: str = "full"
    steady_seconds: int = 60


@dataclass(frozen=True, slots=True)
class Session:
    """One broker with its topics, a folder for scratch, and the sizes."""

    topics: Topics
    folder: Path
    sizes: Sizes
    timeout: float

    def main_load(self, scale: str) -> Load:
        """The load of changes at a scale: `main` or `large`."""
        events = self.sizes.events if scale == "main" else self.sizes.large
        return Load(events=events, keys=self.sizes.events * 2 // 5)

    def filled(self, name: str, load: Load) -> str:
        """A topic with a load."""
        return self.topics.filled(name, load)


Run = Callable[[Session, str, str], list[Record]]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: `run(session, subject, scale)` gives the fields of one or more lines."""

    name: str
    scale: str
    subjects: Sequence[str]
    rounds: int
    run: Run


def ingest(options: Mapping[str, str]) -> Run:
    """A whole topic into an empty table."""

    def run(session: Session, subject: str, scale: str) -> list[Record]:
        refused = not_built(options)
        if refused:
            return [{"not_built": refused}]
        load = session.main_load(scale)
        with _task(session, f"orders-{scale}", load, options) as task:
            return [_written(session, subject, task, load)]

    return run


def changing(tables: int, options: Mapping[str, str]) -> Run:
    """A whole topic of messages with schemas, which change in the middle, into new tables."""

    def run(session: Session, subject: str, scale: str) -> list[Record]:
        load = replace(session.main_load(scale), tables=tables, changing=True)
        with _task(session, f"changing-{tables}-{scale}", load, options) as task:
            return [_written(session, subject, replace(task, tables=load.table_names), load)]

    return run


def upsert(session: Session, subject: str, _: str) -> list[Record]:
    """Many new rows, then changes of them in a second run of the program."""
    rows = session.sizes.events
    first = Load(events=rows, snapshot=rows, keys=rows * 6 // 5)
    second = replace(first, events=session.sizes.changes, start=rows)
    with _task(session, "orders-rows", first, DYNAMIC) as task:
        before = _written(session, subject, task, first)
        session.filled("orders-changes", second)
        after = _written(session, subject, replace(task, topic="orders-changes"), second)
    right = before["correct"] and after["correct"]
    return [{**after, "correct": right, "rows_per_s": before["per_s"]}]


def cold(session: Session, subject: str, scale: str) -> list[Record]:
    """From the start of the program to its first snapshot."""
    load = replace(session.main_load("main"), events=SMALL) if scale == "small" else None
    load = load or session.main_load("main")
    name = "orders-small" if scale == "small" else "orders-main"
    with _task(session, name, load, DYNAMIC) as task:
        task = replace(task, checkpoint_seconds=COLD_CHECKPOINT_SECONDS)
        return [_written(session, subject, task, load)]


def floor(session: Session, _: str, scale: str) -> list[Record]:
    """The steps alone."""
    topic = session.filled(f"orders-{scale}", session.main_load(scale))
    with _scratch(session) as folder:
        return [floors(session.topics.broker.bootstrap, topic, folder, all_cores())]


def small_batches(records: int) -> Run:
    """Batches of this many records in a warm daemon, on a topic that is made for each run."""

    def run(session: Session, _: str, scale: str) -> list[Record]:
        sizes = session.sizes
        batches = sizes.latency_batches if records >= SMALL else sizes.tiny_batches
        with _scratch(session) as folder:
            topic = f"latency-{folder.name}"
            rhythm = Rhythm(records, batches)
            session.topics.broker.create_topic(topic, rhythm.load.partitions)
            every = commit_every(sizes.events)
            return [measure(_new_task(session, topic, folder, DYNAMIC, every), rhythm)]

    return run


def steady_load(session: Session, subject: str, _: str) -> list[Record]:
    """The highest constant rate at which records can be read in time, and half of it."""
    broker = session.topics.broker
    batches = steady.cycle(broker.bootstrap, session.filled("orders-cycle", steady.CYCLE))

    def hold(rate: float) -> Record:
        with _scratch(session) as folder:
            topic, options = f"steady-{folder.name}", {**DYNAMIC, **steady.EXPIRING}
            broker.create_topic(topic, steady.CYCLE.partitions, KEEP_ALL)
            task = _new_task(session, topic, folder, options, steady.CYCLE.events // 2)
            found = steady.hold(task, subject, batches, rate, session.sizes.steady_seconds)
            rows = rows_read_by_java(task.warehouse, task.scratch, steady.CYCLE.schema)
            return {**found, "correct": same_rows(rows, session.topics.expected(steady.CYCLE))}

    return [steady.highest_rate(hold)]


def reading(session: Session, _: str, __: str) -> list[Record]:
    """A table of overlapping runs, read by all readers."""
    with _scratch(session) as folder:
        return [own_programs.reading(session.sizes.read_rows, folder, session.timeout)]


def compacting(session: Session, _: str, __: str) -> list[Record]:
    """Overlapping runs, compacted by ingestd and by Java."""
    with _scratch(session) as folder:
        return [own_programs.compacting(session.sizes.compacted_rows, folder, session.timeout)]


def cost_growth(session: Session, _: str, __: str) -> list[Record]:
    """What a batch costs as tables and loads grow."""
    with _scratch(session) as folder:
        return [{"points": own_programs.growing(session.sizes.growth, folder, session.timeout)}]


def more_cores(session: Session, _: str, __: str) -> list[Record]:
    """Rates with more tasks, and the bytes that pass the driver."""
    return [{"points": [asdict(point) for point in cluster.measure()]}]


def executors(_: Session, __: str, ___: str) -> list[Record]:
    """Rate and CPU of two executors, with authenticated channels, beside the local master."""
    masters, spark = (cluster.LOCAL, cluster.TWO_EXECUTORS), {"spark.authenticate": "true"}
    points = cluster.measure(_EXECUTOR_EVENTS, masters, spark=spark)
    return [{"points": [asdict(point) for point in points]}]


def not_built(options: Mapping[str, str]) -> str | None:
    """Why ingestd refuses to write a table with these options; None if it does not."""
    columns = [(name, parse_type(text)) for name, text in COLUMN_TYPES.items()]
    schema = new_schema(columns, (KEY,), (), dict(options), 0)
    try:
        refuse_unsupported(schema, for_write=True)
    except UnsupportedError as error:
        return error.message
    return None


def _measures() -> list[Measure]:
    ours = ("ingestd",)
    against_flink = ("ingestd", "flink")
    against_actions = ("ingestd", "action", "action-1s")
    by_input = {**DYNAMIC, "changelog-producer": "input"}
    by_lookup = {**DYNAMIC, "changelog-producer": "lookup"}
    return [
        Measure("ingest", "main", ("ingestd", "flink", "java", "pypaimon"), 5, ingest(DYNAMIC)),
        Measure("changing", "main", against_actions, 3, changing(1, DYNAMIC)),
        Measure("changing-tables", "main", against_actions, 3, changing(MANY_TABLES, ONE_BUCKET)),
        Measure("ingest-fixed", "main", ("pypaimon",), 3, ingest(FIXED)),
        Measure("ingest-writeonly", "main", ("flink", "java"), 3, ingest(WRITE_ONLY)),
        Measure("floors", "main", ours, 5, floor),
        Measure("upsert", "main", against_flink, 5, upsert),
        Measure("cold", "small", against_flink, 5, cold),
        Measure("cold", "main", against_flink, 3, cold),
        Measure("changelog-input", "main", against_flink, 3, ingest(by_input)),
        Measure("changelog-lookup", "main", against_flink, 3, ingest(by_lookup)),
        Measure("latency", "main", ours, 3, small_batches(SMALL)),
        Measure("tiny", "main", ours, 3, small_batches(10)),
        Measure("steady", "main", against_flink, 1, steady_load),
        Measure("ingest", "large", ("ingestd", "flink", "java"), 3, ingest(DYNAMIC)),
        Measure("read", "main", ours, 1, reading),
        Measure("compaction", "main", ours, 1, compacting),
        Measure("growth", "main", ours, 1, cost_growth),
        Measure("cores", "main", ours, 1, more_cores),
        Measure("executors", "main", ours, 3, executors),
    ]


MEASURES = tuple(_measures())


def _written(session: Session, subject: str, task: Task, load: Load) -> Record:
    """One run of one program, its figures, and whether the table is right afterwards."""
    figures: Figures
    more: Record = {}
    if subject == "ingestd":
        figures, more = run_ingestd(task)
    else:
        figures = PEER_RUNS[subject](task)
    rows = rows_read_by_java(task.warehouse, task.scratch, load.schema)
    right = same_rows(rows, session.topics.expected(load))
    if task.options.get("changelog-producer"):
        snapshots = map(snapshot, snapshot_files(task.warehouse))
        counted = sum(int(snapshot.get("changelogRecordCount") or 0) for snapshot in snapshots)
        more = {**more, "changelog_rows": counted}
    return {**figures.document(), **more, "rows": rows.num_rows, "correct": right}


@contextmanager
def _task(session: Session, topic: str, load: Load, options: Mapping[str, str]) -> Iterator[Task]:
    session.filled(topic, load)
    with _scratch(session) as folder:
        every = commit_every(max(load.events, session.sizes.events))
        yield _new_task(session, topic, folder, options, every)


def commit_every(events: int) -> int:
    """Events between two commits of programs that do not commit by time: four commits at least."""
    return max(1, min(MOST_EVENTS_A_COMMIT, events // 4))


def _new_task(
    session: Session, topic: str, folder: Path, options: Mapping[str, str], every: int
) -> Task:
    return Task(
        bootstrap=session.topics.broker.bootstrap,
        topic=topic,
        warehouse=folder / "warehouse",
        scratch=folder,
        options=options,
        timeout=session.timeout,
        commit_every=every,
    )


@contextmanager
def _scratch(session: Session) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=session.folder, prefix="run-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""The table of goals: what is compared with what, how good it must be, and how good it is.

Ratios are of runs of the same round, so that a busy minute of the machine hits both sides.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.cluster import LOCAL, TWO_EXECUTORS, TWO_WORKERS

Record = Mapping[str, Any]
Values = Callable[[Sequence[Record]], list[float]]


@dataclass(frozen=True, slots=True)
class Goal:
    """One row: `values` takes the records of a session to the figures that are judged.

    `at_least` says which side of `target` is good. `timed` figures are absolute times, which only
    mean something beside the machine's yardstick.
    """

    key: str
    title: str
    against: str
    target: float
    at_least: bool
    values: Values
    unit: str = "x"
    timed: bool = False
    asks: str | None = None

    @property
    def wanted(self) -> str:
        """The goal in words."""
        return f"{'at least' if self.at_least else 'at most'} {number(self.target)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row with its figures; `reason` says why there are none."""

    goal: Goal
    values: tuple[float, ...]
    reason: str = ""

    @property
    def median(self) -> float:
        """The figure that is judged."""
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or why there is no figure."""
        if not self.values:
            return self.reason
        good = self.median >= self.goal.target if self.goal.at_least else None
        good = self.median <= self.goal.target if good is None else good
        return "met" if good else "**missed**"

    @property
    def spread(self) -> str:
        """Median and, of several runs, the range."""
        if not self.values:
            return ""
        middle = number(self.median)
        if len(self.values) == 1:
            return middle
        return f"{middle} [{number(min(self.values))}–{number(max(self.values))}]"


def outcomes(records: Sequence[Record]) -> list[Outcome]:
    """Every goal with what a session says of it."""
    return [_outcome(goal, records) for goal in GOALS]


def number(value: float) -> str:
    """Three digits that matter."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def good(record: Record) -> bool:
    """Whether a line holds figures of a run that ended in the right table."""
    return not ({"failed", "not_built"} & record.keys()) and record.get("correct", True)


def select(records: Sequence[Record], measure: str, subject: str, scale: str) -> list[Record]:
    """The good lines of one subject."""
    wanted = (measure, subject, scale)
    return [
        record
        for record in records
        if (record.get("measure"), record.get("subject"), record.get("scale")) == wanted
        and good(record)
    ]


def _outcome(goal: Goal, records: Sequence[Record]) -> Outcome:
    values = goal.values(records)
    if values:
        return Outcome(goal, tuple(values))
    lines = [record for record in records if goal.asks and record.get("measure") == goal.asks]
    if any("not_built" in line for line in lines):
        return Outcome(goal, (), "not built yet")
    return Outcome(
        goal, (), "failed" if any("failed" in line for line in lines) else "not measured"
    )


def _ratio(measure: str, scale: str, figure: str, peer: str, other: str | None = None) -> Values:
    """Ours by the peer's, round by round; `other` is the measure of the peer if not the same."""

    def values(records: Sequence[Record]) -> list[float]:
        theirs = {
            one["round"]: float(one[figure])
            for one in select(records, other or measure, peer, scale)
        }
        return [
            float(one[figure]) / theirs[one["round"]]
            for one in select(records, measure, "ingestd", scale)
            if theirs.get(one["round"])
        ]

    return values


def _share_of_floor(records: Sequence[Record]) -> list[float]:
    floors = {one["round"]: one["per_s"] for one in select(records, "floors", "ingestd", "main")}
    return [
        one.get("warm_per_s", one["per_s"]) / floors[one["round"]]
        for one in select(records, "ingest", "ingestd", "main")
        if one["round"] in floors
    ]


def _own(measure: str, *path: str) -> Values:
    """A figure of ours, by the names that lead to it."""

    def values(records: Sequence[Record]) -> list[float]:
        found = []
        for one in select(records, measure, "ingestd", "main"):
            value: Any = one
            for name in path:
                value = value[name]
            found.append(float(value))
        return found

    return values


def growth_points(records: Sequence[Record]) -> dict[str, list[tuple[int, float]]]:
    """Size and CPU milliseconds of a batch, by dimension, in order of size."""
    return {
        name: sorted((size, statistics.median(samples)) for size, samples in sizes.items())
        for name, sizes in _growth_samples(records).items()
    }


def tenfold(records: Sequence[Record], dimension: str) -> dict[tuple[int, int], list[float]]:
    """Growth of the cost by growth of the size, of all sizes that are ten times another.

    1 is linear, 0.1 is no growth at all; samples are compared with those of the same time.
    """
    sizes = _growth_samples(records).get(dimension, {})
    return {
        (size, 10 * size): [
            dear / cheap / 10 for cheap, dear in zip(samples, sizes[10 * size], strict=True)
        ]
        for size, samples in sorted(sizes.items())
        if size > 0 and 10 * size in sizes
    }


def _growth_samples(records: Sequence[Record]) -> dict[str, dict[int, list[float]]]:
    found: dict[str, dict[int, list[float]]] = {}
    for record in select(records, "growth", "ingestd", "main"):
        for point in record["points"]:
            samples = point.get("samples") or [point["cpu_ms_per_batch"]]
            found.setdefault(point["dimension"], {})[int(point["size"])] = list(map(float, samples))
    return found


def _growth(dimension: str) -> Values:
    """The worst growth of the cost over ten times the size."""

    def values(records: Sequence[Record]) -> list[float]:
        return max(tenfold(records, dimension).values(), key=statistics.median, default=[])

    return values


def _full_table(records: Sequence[Record]) -> list[float]:
    """A batch into a table of 50,000 files by one into an empty table."""
    samples = _growth_samples(records).get("files", {})
    return [
        full / empty
        for empty, full in zip(samples.get(0, ()), samples.get(50_000, ()), strict=False)
    ]


def _driver_share(records: Sequence[Record]) -> list[float]:
    """Of what moves between processes in a run on a cluster, what goes through the driver."""
    return [
        point["bytes_through_driver"] / point["shuffled_bytes"]
        for record in select(records, "cores", "ingestd", "main")
        for point in record["points"]
        if point["master"] == TWO_WORKERS and point["shuffled_bytes"]
    ]


def _executors_to_local(figure: Callable[[Record], float]) -> Values:
    """A figure of two executors by that of the local master, of runs of one round."""

    def values(records: Sequence[Record]) -> list[float]:
        found = []
        for record in select(records, "executors", "ingestd", "main"):
            points = {point["master"]: figure(point) for point in record["points"]}
            found.append(points[TWO_EXECUTORS] / points[LOCAL])
        return found

    return values


def _steady_to_backlog(records: Sequence[Record]) -> list[float]:
    """CPU a record of each steady run by the median of the runs of a topic that waits."""
    backlog = [one["us_cpu_running"] for one in select(records, "ingest", "ingestd", "main")]
    steady = select(records, "steady", "ingestd", "main")
    if not backlog:
        return []
    return [one["us_cpu_running"] / statistics.median(backlog) for one in steady if one["rate"]]


FLINK, JAVA = "Flink SQL, parallelism 2", "plain Java writer"
ACTION = "Paimon's CDC action 1.3.1 on Flink 1.20"
CHANGING = {
    "changing": "JSON with schemas, a new column, 1 table",
    "changing-tables": "JSON with schemas, a new column, 100 tables",
}
GROWN = {
    "events": "events",
    "keys": "keys",
    "tables": "tables",
    "tables-written": "tables that take rows",
    "partitions": "partitions",
    "partitions-written": "partitions that take rows",
    "files": "files",
    "maintenance": "files, of compaction and expiry",
}
SIZES = {"main": "1 M events", "large": "5 M events"}


def _rate_goals() -> Iterator[Goal]:
    for scale, size in SIZES.items():
        for peer, name, target in (("flink", FLINK, 4.0), ("java", JAVA, 2.5)):
            rate = _ratio("ingest", scale, "per_s", peer)
            yield Goal(f"rate/{peer}/{scale}", f"records/s, {size}", name, target, True, rate)
    for name, measure in (("pypaimon", "ingest"), ("pypaimon, 4 buckets", "ingest-fixed")):
        rate = _ratio("ingest", "main", "per_s", "pypaimon", measure)
        yield Goal(f"rate/{measure}/pypaimon", "records/s, 1 M events", name, 5.0, True, rate)
    floor = "fetch + decode + merge + write alone, all cores"
    yield Goal("floor", "records/s after the first batch", floor, 0.7, True, _share_of_floor)
    rate = _ratio("upsert", "main", "per_s", "flink")
    yield Goal("upsert", "upsert of 200 k events into 1 M keys", FLINK, 3.0, True, rate)
    for kind in ("input", "lookup"):
        key, title = f"changelog-{kind}", f"records/s, changelog {kind}"
        rate = _ratio(key, "main", "per_s", "flink")
        yield Goal(key, title, f"{FLINK}, same producer", 2.0, True, rate, asks=key)


def _cost_goals() -> Iterator[Goal]:
    for scale, size in SIZES.items():
        for peer, name, target in (("flink", FLINK, 0.25), ("java", JAVA, 1 / 3)):
            cpu = _ratio("ingest", scale, "us_cpu_running", peer)
            yield Goal(f"cpu/{peer}/{scale}", f"CPU a record, {size}", name, target, False, cpu)
    for scale, size in SIZES.items():
        memory = _ratio("ingest", scale, "pss_mb", "flink")
        title = f"memory of the process tree, {size}"
        yield Goal(f"memory/{scale}", title, FLINK, 1.0, False, memory)
    for scale, text in (("small", "1,000 events waiting"), ("main", "1 M events waiting")):
        first = _ratio("cold", scale, "first_snapshot_s", "flink")
        title, name = f"cold start to first commit, {text}", "Flink mini cluster"
        yield Goal(f"cold/{scale}", title, name, 0.5, False, first)


def _action_goals() -> Iterator[Goal]:
    for measure, shape in CHANGING.items():
        for peer, checkpoint in (("action", "10 s"), ("action-1s", "1 s")):
            name, place = f"{ACTION}, checkpoints of {checkpoint}", f"{measure}/{peer}"
            rate = _ratio(measure, "main", "per_s", peer)
            title = f"records/s, {shape}"
            yield Goal(f"rate/{place}", title, name, 4.0, True, rate, asks=measure)
            cpu = _ratio(measure, "main", "us_cpu_running", peer)
            title = f"CPU a record, {shape}"
            yield Goal(f"cpu/{place}", title, name, 0.25, False, cpu, asks=measure)
            memory = _ratio(measure, "main", "pss_mb", peer)
            title = f"memory of the process tree, {shape}"
            yield Goal(f"memory/{place}", title, name, 1.0, False, memory, asks=measure)


def _steady_goals() -> Iterator[Goal]:
    rate = _ratio("steady", "main", "rate", "flink")
    title = "highest constant rate with produce to readable, p99, below 2 s"
    name = f"{FLINK}, checkpoints of 1 s"
    yield Goal("steady/rate", title, name, 5.0, True, rate, asks="steady")
    title, name = "CPU a record at the highest constant rate", "1 M events waiting"
    yield Goal("steady/cpu", title, name, 1.3, False, _steady_to_backlog, asks="steady")


def _executor_goals() -> Iterator[Goal]:
    rate = _executors_to_local(lambda point: point["records_per_second"])
    title, two = "records/s after the first batch", "two executors of one core"
    yield Goal("executors/rate", f"{title}, {two}", LOCAL, 0.85, True, rate)
    cpu = _executors_to_local(lambda point: point["cpu_us"]["all"])
    yield Goal("executors/cpu", f"CPU a record, {two}", LOCAL, 1.15, False, cpu)


def _time_goals() -> Iterator[Goal]:
    fresh = "1,000 records, produce to readable snapshot, p99"
    for key, title, target, span, rank in (
        ("p50", "batch of 1,000 records, p50", 400.0, "batch_ms", "p50"),
        ("p99", "batch of 1,000 records, p99", 1000.0, "batch_ms", "p99"),
        ("fresh", fresh, 1500.0, "produce_to_readable_ms", "p99"),
    ):
        values = _own("latency", span, rank)
        yield Goal(f"latency/{key}", title, "", target, False, values, "ms", timed=True)
    values = _own("tiny", "cpu_ms_per_batch")
    yield Goal("fixed", "CPU of a batch of 10 records", "", 150.0, False, values, "ms", timed=True)


def _table_goals() -> Iterator[Goal]:
    for measure, title, peer, target in (
        ("read", "reading a table of 5 overlapping runs", "java", 1.0),
        ("read", "reading a table of 5 overlapping runs", "pypaimon", 3.0),
        ("compaction", "compaction of 5 overlapping runs, rows/s", "java", 1.0),
    ):
        name = {"java": "Java Paimon"}.get(peer, peer)
        values = _own(measure, "times_faster", peer)
        yield Goal(f"{measure}/{peer}", title, name, target, True, values)
    values = _own("compaction", "compactors", "ingestd", "peak_mb")
    yield Goal("compaction/memory", "memory of a compaction", "", 512.0, False, values, "MB")


def _growth_goals() -> Iterator[Goal]:
    for dimension, of in GROWN.items():
        title = f"cost by {of}, 10 times as many: growth of CPU by growth of size"
        yield Goal(f"growth/{dimension}", title, "linear is 1", 1.0, False, _growth(dimension))
    title = "bytes through the driver by bytes shuffled"
    yield Goal("cores/driver", title, "standalone Spark, 2 workers", 0.05, False, _driver_share)
    title = "1,000 records into 50,000 files in 2,000 partitions"
    yield Goal("growth/full", title, "an empty table", 1.5, False, _full_table)


GOALS = (
    *_rate_goals(),
    *_cost_goals(),
    *_action_goals(),
    *_executor_goals(),
    *_steady_goals(),
    *_time_goals(),
    *_table_goals(),
    *_growth_goals(),
)

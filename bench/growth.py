"""How the cost of a batch grows with the events in it and with what the tables already hold.

    python -m bench.growth [quick|full] [DIMENSION ...]

CPU time is compared, and all sizes of a dimension take turns, step by step, so that a busy minute
of the machine hits all of them. A sample is the mean of several steps where not every step does
the same: a table's manifests are joined every thirty commits.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import growing
from bench.growing import Growing, Make
from bench.one_process import Spent
from ingestd.spark.startup.python_daemon import keep_memory, prepare_imports

WARM_UP = 2
_CYCLE = 30
_SET_FOR_WORKERS = "MIMALLOC_PURGE_DELAY"
_GARBAGE_OBJECTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Dimension:
    """What grows, by which sizes, and how often each size takes its turn.

    Each of `samples` is the mean of `steps`; `note` says what a step is.
    """

    make: Make
    sizes: Sequence[int]
    samples: int
    steps: int
    note: str


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """What one step costs at one size of one dimension: the median of the samples, and these.

    Samples of one place in `samples` were taken at the same time at all sizes.
    """

    dimension: str
    size: int
    cpu_ms_per_batch: float
    wall_ms_per_batch: float
    samples: tuple[float, ...]
    note: str


TEN_TABLES = "1,000 records into 10 of the tables"
TEN_PARTITIONS = "1,000 records, half new keys, into 10 of the partitions"
DIMENSIONS: Mapping[str, Dimension] = {
    "events": Dimension(
        growing.events,
        (1_000, 5_000, 10_000, 50_000, 100_000, 500_000),
        7,
        1,
        "records of one batch, half new keys",
    ),
    "keys": Dimension(
        growing.keys, (190_000, 1_900_000, 19_000_000), 7, 4, "1,000 records, half new keys"
    ),
    "tables": Dimension(growing.tables, (20, 200), 5, 6, TEN_TABLES),
    "tables-written": Dimension(
        growing.tables_written, (10, 100), 7, 1, "100 records into each of the tables"
    ),
    "partitions": Dimension(growing.partitions, (200, 2_000, 20_000), 3, _CYCLE, TEN_PARTITIONS),
    "partitions-written": Dimension(
        growing.partitions_written, (20, 200), 7, 1, "10 records into each of these partitions"
    ),
    "files": Dimension(
        growing.files, (0, 5_000, 50_000), 3, _CYCLE, f"{TEN_PARTITIONS}, which are 2,000"
    ),
    "maintenance": Dimension(
        growing.maintenance,
        (0, 5_000, 50_000),
        5,
        1,
        "files; a compaction of 10 of 2,000 partitions, and an expiry of 5 snapshots",
    ),
    "columns": Dimension(growing.columns, (50, 500), 7, 1, "1,000 records"),
}
_QUICK: Mapping[str, Sequence[int]] = {
    "events": (1_000, 10_000),
    "keys": (19_000, 190_000),
    "tables": (10, 100),
    "tables-written": (10, 100),
    "partitions": (20, 200),
    "partitions-written": (2, 20),
    "files": (0, 4_000),
    "maintenance": (0, 4_000),
    "columns": (5, 50),
}
SCALES: Mapping[str, Mapping[str, Dimension]] = {
    "quick": {
        name: Dimension(one.make, _QUICK[name], 3, 1, one.note) for name, one in DIMENSIONS.items()
    },
    "full": DIMENSIONS,
}


def measure(scale: str, only: Collection[str] = ()) -> Iterator[GrowthPoint]:
    """The dimensions of a scale, "quick" or "full": those of these names, or all."""
    for name, dimension in SCALES[scale].items():
        if not only or name in only:
            yield from measured(name, dimension)


def measured(name: str, dimension: Dimension) -> list[GrowthPoint]:
    """One dimension at all its sizes, which take turns."""
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        sides = [dimension.make(Path(folder) / f"t{size}", size) for size in dimension.sizes]
        for side in sides:
            for _ in range(WARM_UP):
                side.step()
        samples = [_sample(sides, dimension.steps, number) for number in range(dimension.samples)]
    return [
        _point(name, dimension, size, [sample[place] for sample in samples])
        for place, size in enumerate(dimension.sizes)
    ]


def _sample(sides: Sequence[Growing], steps: int, number: int) -> list[Spent]:
    """The mean of some steps of each side; no one is always first."""
    places = range(len(sides))
    taken: list[list[Spent]] = [[] for _ in places]
    gc.collect()  # as a worker does after its tasks
    for step in range(number, number + steps):
        for place in reversed(places) if step % 2 else places:
            taken[place].append(sides[place].step())
    return [
        Spent(
            statistics.fmean(one.cpu_ms for one in own),
            statistics.fmean(one.wall_ms for one in own),
        )
        for own in taken
    ]


def _point(name: str, dimension: Dimension, size: int, samples: Sequence[Spent]) -> GrowthPoint:
    return GrowthPoint(
        dimension=name,
        size=size,
        cpu_ms_per_batch=statistics.median(sample.cpu_ms for sample in samples),
        wall_ms_per_batch=statistics.median(sample.wall_ms for sample in samples),
        samples=tuple(round(sample.cpu_ms, 3) for sample in samples),
        note=dimension.note,
    )


def _be_a_worker() -> None:
    """Allocate and collect as the processes do in which nearly all of a batch happens."""
    if _SET_FOR_WORKERS not in os.environ:
        prepare_imports()
        os.execv(sys.executable, [sys.executable, "-m", "bench.growth", *sys.argv[1:]])
    keep_memory()
    gc.freeze()
    gc.set_threshold(_GARBAGE_OBJECTS)


def main() -> None:
    """Print one JSON line for each point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _be_a_worker()
    parser.add_argument("scale", nargs="?", default="quick", choices=sorted(SCALES))
    parser.add_argument("dimensions", nargs="*", help=f"of {', '.join(DIMENSIONS)}; all without")
    chosen = parser.parse_args()
    for point in measure(chosen.scale, chosen.dimensions):
        print(json.dumps(asdict(point)), flush=True)


if __name__ == "__main__":
    main()

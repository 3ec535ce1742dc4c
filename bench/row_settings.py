"""What a row filter and a hashed column cost: whole runs of the daemon with and without them.

    python -m bench.row_settings [--events N] [--rounds N]

All runs of a round read the same topic, one after the other, and each round begins with another
setting. Ratios are of the same round, to the run without: `CPU` is that of the whole process tree
from its start to its end, as the page of results has it for a load, `running` the same without the
start of the program.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figures, Moments, figures, snapshot_files
from bench.ingestd_run import TABLE, begin, configuration, finished_batches, start
from bench.load import Load
from bench.peer_runs import Task
from bench.process import BenchError
from bench.topics import Topics
from ingestd.dev.broker import DevBroker

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "without": {},
    "where, all rows pass": {"where": "status <> 'LOST' and qty >= 0"},
    "where, 6 of 7 rows pass": {"where": "region <> 'us-west'"},
    "sha2 beside": {"computed-columns": {"note_hash": "sha2(note, 256)"}},
    "sha2 instead": {
        "computed-columns": {"note_hash": "sha2(note, 256)"},
        "select": {"exclude": ["note"]},
    },
}
"""Keys of the table, by the name of the row that is printed."""
_TIMEOUT = 900.0


def run_with(broker: DevBroker, topic: str, own: Mapping[str, Any], folder: Path) -> Figures:
    """Read a topic into a new table with these keys; BenchError if records were rejected."""
    task = Task(broker.bootstrap, topic, folder / "warehouse", folder, {"bucket": "2"}, _TIMEOUT)
    document = configuration(task)
    document["tables"][TABLE] |= own
    with start(task, document, "--until-latest") as process:
        process.finish(_TIMEOUT)
    batches = finished_batches(process)
    if not batches or sum(batch["rejected"] for batch in batches):
        raise BenchError(f"no records, or rejected ones:\n{process.tail()}")
    moments = Moments(begin(batches[0]), snapshot_files(task.warehouse)[-1].stat().st_mtime)
    records = sum(batch["records"] for batch in batches)
    return figures(process, moments, records, task.warehouse)


def line(name: str, runs: Sequence[Figures], base: Sequence[Figures]) -> str:
    """A row of the printed table: the medians of the ratios, with the least and the largest."""
    cpu = _ratios([own.us_cpu for own in runs], [other.us_cpu for other in base])
    running = _ratios(
        [own.us_cpu_running for own in runs], [other.us_cpu_running for other in base]
    )
    return f"| {name} | {statistics.median(own.us_cpu for own in runs):.2f} | {cpu} | {running} |\n"


def _ratios(own: Sequence[float], base: Sequence[float]) -> str:
    ratios = [mine / other for mine, other in zip(own, base, strict=True)]
    return f"{statistics.median(ratios):.3f} [{min(ratios):.2f}-{max(ratios):.2f}]"


def main(arguments: Sequence[str]) -> None:
    """Print a row for each setting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    names = list(SETTINGS)
    runs: dict[str, list[Figures]] = {name: [] for name in names}
    with DevBroker() as broker:
        load = Load(events=given.events, keys=given.events * 2 // 5)
        topic = Topics(broker).filled("orders", load)
        for turn in range(given.rounds):
            first = turn % len(names)
            for name in (*names[first:], *names[:first]):
                with tempfile.TemporaryDirectory() as folder:
                    runs[name].append(run_with(broker, topic, SETTINGS[name], Path(folder)))
                sys.stderr.write(f"{turn + 1} {name}: {runs[name][-1].us_cpu:.2f} us\n")
    sys.stdout.write(f"{given.events:,} events, n = {given.rounds}\n\n")
    sys.stdout.write("| setting | us of CPU a record | CPU | running |\n|---|---|---|---|\n")
    for name in names:
        sys.stdout.write(line(name, runs[name], runs["without"]))


if __name__ == "__main__":
    main(sys.argv[1:])

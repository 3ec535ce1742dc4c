"""Looking up primary keys: `Table.get` of ingestd and Java's LocalTableQuery, in turns.

    python -m bench.point_reads --rows 1000000

The table has five overlapping runs, as that of `bench.read`. Half of the keys that are looked up
exist. Cold is the first call of a process, which opens the table, without its start; warm are the
calls after it, each with other keys. Java converts each data file that it looks into to a local
file of its own, once; ingestd keeps nothing between calls. The last line is JSON.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from bench import java
from bench.process import end_all_on_signals
from bench.read import make_table
from ingestd.paimon import Table, open_warehouse

SIDES = ("ingestd", "java")


def get_here(warehouse: str) -> None:
    """Look up the keys of each line of the input with ingestd, and print a line of JSON."""
    table: Table | None = None
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        if table is None:
            table = open_warehouse(warehouse).table("db.t")
        found = table.get([{"id": int(key)} for key in line.split(",")])
        total = pc.sum(found.column("n")).as_py() or 0
        times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps({"rows": found.num_rows, "sum": total, **times}), flush=True)


def command(side: str, warehouse: Path, scratch: Path) -> Sequence[str]:
    """The command line of a side."""
    if side == "ingestd":
        return [sys.executable, "-m", "bench.point_reads", "--here", str(warehouse)]
    return java.command("java", "LookUpKeys", [warehouse, scratch], heap="1g")


def answers(
    sides: Sequence[str], warehouse: Path, calls: Sequence[Sequence[int]]
) -> dict[str, list[Mapping[str, Any]]]:
    """What new processes of the sides answer to calls, one call of each side after the other."""
    with tempfile.TemporaryDirectory(prefix="ingestd-keys-") as scratch:
        running = {
            side: subprocess.Popen(
                command(side, warehouse, Path(scratch)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for side in sides
        }
        found: dict[str, list[Mapping[str, Any]]] = {side: [] for side in sides}
        try:
            for call in calls:
                for side, process in running.items():
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write(",".join(map(str, call)) + "\n")
                    process.stdin.flush()
                    found[side].append(json.loads(process.stdout.readline()))
        finally:
            for process in running.values():
                process.kill()
                process.communicate()
    return found


def measured(warehouse: Path, rows: int, keys: int, rounds: int, cold: int) -> dict[str, Any]:
    """Seconds of cold and warm calls with this many keys; SystemExit if the sides disagree."""
    chosen = random.Random(keys)
    times: dict[str, dict[str, list[float]]] = {
        what: {side: [] for side in SIDES} for what in ("cold", "cold-cpu", "warm", "warm-cpu")
    }
    for _ in range(cold):
        calls = [[chosen.randrange(2 * rows) for _ in range(keys)] for _ in range(1 + rounds)]
        found = answers(SIDES, warehouse, [list(dict.fromkeys(call)) for call in calls])
        results = [[(one["rows"], one["sum"]) for one in found[side]] for side in SIDES]
        if results[0] != results[1]:
            raise SystemExit(f"the sides disagree: {results}")
        for side, (first, *others) in found.items():
            times["cold"][side].append(first["wall"])
            times["cold-cpu"][side].append(first["cpu"])
            times["warm"][side] += [one["wall"] for one in others]
            times["warm-cpu"][side] += [one["cpu"] for one in others]
    return {what: summary(by_side) for what, by_side in times.items()}


def summary(by_side: Mapping[str, Sequence[float]]) -> Mapping[str, Any]:
    """Median, least and most of each side, and how many times as fast ingestd is as Java."""
    ours, java = (statistics.median(by_side[side]) for side in SIDES)
    spread = {
        side: {"median": statistics.median(seen), "least": min(seen), "most": max(seen)}
        for side, seen in by_side.items()
    }
    return {"n": len(by_side["java"]), **spread, "ratio": round(java / ours, 3)}


def main() -> None:
    end_all_on_signals()
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--keys", type=int, nargs="+", default=[1, 1000])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--cold", type=int, default=3)
    arguments.add_argument("--here", metavar="WAREHOUSE")
    given = arguments.parse_args()
    if given.here is not None:
        get_here(given.here)
        return
    report: dict[str, Any] = {"rows": given.rows, "load": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="ingestd-points-") as folder:
        make_table(Path(folder), given.rows, 4)
        for keys in given.keys:
            report[str(keys)] = measured(Path(folder), given.rows, keys, given.rounds, given.cold)
            for what, one in report[str(keys)].items():
                sides = "  ".join(
                    f"{side} {one[side]['median'] * 1000:8.2f} ms "
                    f"[{one[side]['least'] * 1000:.2f}-{one[side]['most'] * 1000:.2f}]"
                    for side in SIDES
                )
                print(f"{keys:5} keys {what:9} n={one['n']:<3} {sides}  ratio {one['ratio']}")
    print(json.dumps(report))


if __name__ == "__main__":
    main()

"""A day of small batches in one run of the daemon: nothing grows that should not, and all is right.

With INGESTD_LONG=1 it is what 100 events a second bring in 24 hours, committed every 90 seconds:
8.6 million events in 960 batches, as fast as the machine takes them, or as many as it takes in
INGESTD_SOAK_MINUTES. Compaction and expiry are at work all the time.
"""

import json
import os
import statistics
import time
import uuid
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, run_daemon
from tests.support.ledger import TABLES, Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.processes import open_files, shares

LONG = "INGESTD_LONG" in os.environ
pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.slow]
BATCHES = int(os.environ.get("INGESTD_SOAK_BATCHES", "960" if LONG else "24"))
BATCH = int(os.environ.get("INGESTD_SOAK_BATCH", "9000" if LONG else "500"))
SECONDS = 60 * float(os.environ.get("INGESTD_SOAK_MINUTES", "inf"))
AHEAD = 12
"""Batches that the topics hold before they are read."""
SAMPLE_SECONDS = 5 if LONG else 1
RETAINED = 20
SCRATCH = ("TMPDIR", "SPARK_LOCAL_DIRS")
KINDS = ("java", "python", "ingestd-worker", "ingestd-maint")
GROWTH = 1.1
"""How much more the last quarter of a run may take than the second."""
SWAY = 8
"""MiB by which a small process may seem to grow when one that it shares pages with has ended."""
OPTIONS = {"snapshot.num-retained.min": "10", "snapshot.num-retained.max": str(RETAINED)}
Sample = dict[str, float]


@pytest.mark.timeout(7200 if LONG else 900)
def test_a_day_of_batches_grows_nothing_and_every_event_is_there_once(
    tmp_path: Path, broker: DevBroker, request: pytest.FixtureRequest
) -> None:
    ledger = Ledger(f"d{uuid.uuid4().hex[:8]}", BATCHES * BATCH)
    ledger.produce(broker, 0, AHEAD * BATCH)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        options=OPTIONS,
        batch_rows=BATCH,
        expiry={"interval": "5s"},
    )
    config["pipeline"]["trigger"] = "0s"
    # Its name is short, since a socket lies there.
    with (
        TemporaryDirectory(prefix="soak-") as scratch,
        run_daemon(config, tmp_path, environment=dict.fromkeys(SCRATCH, scratch)) as daemon,
    ):
        begun = time.monotonic()
        samples, produced = _watched(daemon, ledger, broker, (tmp_path, Path(scratch)))
        ledger = replace(ledger, events=produced)
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail()
    begun_with = next(n for n, sample in enumerate(samples) if sample["batches"])
    told = {name: _quarters(samples[begun_with:], name) for name in samples[-1]}
    seconds = round(time.monotonic() - begun)
    print(json.dumps({"events": produced, "seconds": seconds, **told}))
    with Oracle(heap="6g") if LONG else nullcontext(request.getfixturevalue("oracle")) as oracle:
        assert judge(ledger, tmp_path / "warehouse", oracle) == []
    assert max(sample["snapshots"] for sample in samples) <= 3 * len(TABLES) * RETAINED
    if LONG:
        # Each kind of process by itself: one that grows is lost in the sum of all.
        kinds = [f"memory of {kind}" for kind in KINDS]
        for name in ("memory", *kinds, "descriptors", "files", "temporary files"):
            second, last = told[name][1], told[name][3]
            most = max(GROWTH * second, second + SWAY if name in kinds else 0)
            assert last <= most, f"{name} grows: {told[name]}"


def _watched(
    daemon: Daemon, ledger: Ledger, broker: DevBroker, folders: tuple[Path, Path]
) -> tuple[list[Sample], int]:
    """Put events in ahead of the daemon until all are in the tables.

    Returns what was seen meanwhile, and how many events there were time for.
    """
    samples: list[Sample] = []
    produced, sampled, wanted = AHEAD * BATCH, 0.0, ledger.events
    end = time.monotonic() + SECONDS
    with (folders[0] / "soak.jsonl").open("w") as output:
        while (done := _told(daemon, "ingestd_source_records_total{")) < wanted:
            assert daemon.process.poll() is None, daemon.tail()
            if time.monotonic() >= end:
                wanted = produced
            if produced < min(wanted, done + AHEAD * BATCH):
                until = min(wanted, produced + AHEAD // 3 * BATCH)
                ledger.append(broker, produced, until)
                produced = until
            elif time.monotonic() - sampled >= SAMPLE_SECONDS:
                sampled = time.monotonic()
                samples.append(_sample(daemon, *folders))
                print(json.dumps(samples[-1]), file=output, flush=True)
            else:
                time.sleep(0.05)
    return samples, produced


def _sample(daemon: Daemon, folder: Path, scratch: Path) -> Sample:
    family = daemon.family()
    found = {
        "memory": shares(family) >> 20,
        "descriptors": open_files(family),
        "batches": _told(daemon, "ingestd_batch_seconds_count"),
        "records": _told(daemon, "ingestd_source_records_total{"),
        "files": _count(folder / "warehouse", "**/*"),
        "temporary files": sum(len(files) for _, _, files in os.walk(scratch)),
        "snapshots": _count(folder / "warehouse", f"{DATABASE}.db/*/snapshot/snapshot-*"),
    }
    for kind in KINDS:
        mine = [pid for pid, command in family.items() if command.startswith(kind)]
        found[f"memory of {kind}"] = shares(mine) >> 20
    return found


def _count(folder: Path, pattern: str) -> int:
    """How many are there; some go while one counts."""
    while True:
        try:
            return sum(1 for _ in folder.glob(pattern))
        except FileNotFoundError:
            continue


def _told(daemon: Daemon, begin: str) -> float:
    """The sum of the samples of a metric whose lines begin so."""
    lines = daemon.get("/metrics")[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(begin))


def _quarters(samples: list[Sample], name: str) -> list[float]:
    """The median of each quarter of the run."""
    size = len(samples)
    parts = [samples[size * n // 4 : max(size * (n + 1) // 4, size * n // 4 + 1)] for n in range(4)]
    return [round(statistics.median(one[name] for one in part), 1) for part in parts]

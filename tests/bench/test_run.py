"""Which runs are made and in which order; figures that need no program."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.journal import Journal
from bench.latency import percentile
from bench.measures import MEASURES, Measure, Sizes, commit_every, not_built
from bench.process import BenchError, MeteredProcess
from bench.run import QUICK, Runner, chosen_measures, jobs


def test_programs_take_turns_and_nobody_is_always_first() -> None:
    measures = [
        measure for measure in MEASURES if (measure.name, measure.scale) == ("ingest", "main")
    ]
    found = [(job.slot.round, job.slot.subject) for job in jobs(measures, ["flink", "java"], 2)]
    assert found == [(0, "flink"), (0, "java"), (1, "java"), (1, "flink")]


def test_without_a_large_load_its_measures_are_left_out() -> None:
    assert {chosen_measure.scale for chosen_measure in chosen_measures([], QUICK)} == {
        "main",
        "small",
    }
    assert "large" in {chosen_measure.scale for chosen_measure in chosen_measures([], Sizes())}
    assert [chosen_measure.name for chosen_measure in chosen_measures(["cold/small"], Sizes())] == [
        "cold"
    ]


@pytest.mark.parametrize(
    ("events", "every"), [(5_000_000, 500_000), (1_000_000, 250_000), (40, 10), (1, 1)]
)
def test_a_load_is_committed_in_parts_of_what_ingestd_takes_at_a_time(
    events: int, every: int
) -> None:
    assert commit_every(events) == every


def test_the_product_is_asked_what_it_can_write() -> None:
    assert not_built({"bucket": "-1"}) is None
    assert "merge-engine" in str(not_built({"bucket": "-1", "merge-engine": "no-such"}))


def test_a_measure_that_breaks_is_written_down_and_does_not_end_the_session(tmp_path: Path) -> None:
    def breaks(*_: object) -> list[dict[str, object]]:
        raise ZeroDivisionError("no figures")

    journal = Journal(tmp_path / "log.jsonl")
    broken = Measure("broken", "main", ("ingestd",), 1, breaks)
    runner = Runner(journal, QUICK, tmp_path, 1.0)
    runner._live_session = lambda: None  # type: ignore[method-assign]  # no broker for this
    runner.run(list(jobs([broken], [], None)))
    (record,) = journal.records()
    assert record["failed"] == "ZeroDivisionError: no figures"
    assert record["yardstick_ms"] > 0


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([1.0, 2.0], 0.5) == 1.0


def test_cpu_of_children_counts_and_a_moment_can_be_asked_for(tmp_path: Path) -> None:
    busy = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])"
    with MeteredProcess([sys.executable, "-c", program], tmp_path / "log") as process:
        process.finish(60)
    assert process.cpu_seconds >= 0.45
    assert process.meter.peak_rss_bytes > 1 << 20
    assert process.meter.cpu_at(process.started) <= process.meter.cpu_at(time.time())


def test_a_program_that_fails_shows_the_end_of_its_output(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('out of ideas')"]
    with (
        MeteredProcess(command, tmp_path / "log") as process,
        pytest.raises(BenchError, match="out of ideas"),
    ):
        process.finish(60)


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 300 & echo $!; wait"]
    with (
        MeteredProcess(command, tmp_path / "log") as process,
        pytest.raises(BenchError, match="runs for"),
    ):
        process.finish(0.5)
    child = (tmp_path / "log").read_text().split()[0]
    state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True)
    assert state.stdout.strip() in {"", "Z"} or state.stdout.strip().startswith("Z")

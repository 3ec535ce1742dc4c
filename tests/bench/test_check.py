"""The guard names what got slower, and only that."""

from pathlib import Path

import pytest

from bench import check
from bench.check import slower, tolerance
from bench.journal import Journal
from bench.report import Stored, store
from tests.support.bench_session import line, session


def slowed(measure: str, key: str, factor: float) -> list[dict[str, object]]:
    return [
        {**one, key: one[key] * factor}
        if one["measure"] == measure and one["subject"] == "ingestd"
        else one
        for one in session()
    ]


def titles(now: list[dict[str, object]]) -> list[str]:
    return [one.title for one in slower([Stored({}, session())], now)]


def test_an_equal_session_is_not_slower() -> None:
    assert titles(session()) == []


def test_a_whole_machine_that_is_slower_changes_no_ratio() -> None:
    now = [{**one, "per_s": one["per_s"] / 3} if "per_s" in one else one for one in session()]
    assert titles(now) == []


def test_less_speed_than_the_peers_is_named() -> None:
    found = titles(slowed("ingest", "per_s", 0.7))
    assert any("Flink" in one for one in found)
    assert any("Java" in one for one in found)
    assert not any("upsert" in one for one in found)


def test_more_cpu_than_the_peers_is_named() -> None:
    found = titles(slowed("ingest", "us_cpu_running", 1.5))
    assert found == [one for one in found if one.startswith("CPU")]
    assert found


def test_being_faster_is_no_fault() -> None:
    assert titles(slowed("ingest", "per_s", 2.0)) == []


def test_absolute_times_are_compared_by_the_yardstick() -> None:
    assert titles(slowed("tiny", "cpu_ms_per_batch", 2.0)) == ["CPU of a batch of 10 records"]
    now = [{**one, "yardstick_ms": 200.0} for one in slowed("tiny", "cpu_ms_per_batch", 2.0)]
    assert titles(now) == []


def test_a_row_may_lose_the_range_it_had_and_at_least_a_tenth() -> None:
    assert tolerance([1.0, 1.01]) == pytest.approx(0.10)
    assert tolerance([0.8, 1.0, 1.2]) == pytest.approx(0.4)
    assert tolerance([1.0]) == pytest.approx(0.25)


def test_the_command_says_what_got_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored, log = tmp_path / "sessions", tmp_path / "log.jsonl"
    store(Stored({"date": "2026-11-21"}, session()), stored)
    journal = Journal(log)
    for one in slowed("upsert", "per_s", 0.5):
        journal.add(one)
    journal.add(line("nothing", "ingestd"))
    monkeypatch.setattr("sys.argv", ["check", "--log", str(log), "--stored", str(stored)])
    assert check.main() == 1
    told = capsys.readouterr().out
    assert "SLOWER  upsert of 200 k events into 1 M keys" in told
    assert told.strip().endswith("1 slower")
    store(Stored({"date": "2026-11-21", "sizes": {"events": 7}}, session()), stored)
    assert check.main() == 2


def test_a_row_is_compared_with_the_newest_session_that_has_it() -> None:
    slow = slowed("upsert", "per_s", 0.5)
    newest = [one for one in slowed("ingest", "per_s", 0.5) if one["measure"] != "upsert"]
    stored = [Stored({}, slow), Stored({}, newest)]
    assert not any("upsert" in one.title for one in slower(stored, slow))
    assert not any("1 M" in one.title for one in slower(stored, newest))
    assert any("upsert" in one.title for one in slower([Stored({}, session())], slow))

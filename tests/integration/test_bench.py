"""The bench from end to end at its smallest: our own path, its checks, its log, its page."""

import json
from pathlib import Path

import pytest

from bench.journal import Journal
from bench.measures import MEASURES, Sizes
from bench.report import from_journal, goals_table, runs_table
from bench.run import Runner, jobs

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SIZES = Sizes(events=4_000, large=0, latency_batches=3, tiny_batches=3)
WANTED = {("ingest", "main"), ("floors", "main"), ("tiny", "main")}


@pytest.mark.timeout(600)
def test_our_own_rows_are_measured_verified_and_reported(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log.jsonl")
    measures = [measure for measure in MEASURES if (measure.name, measure.scale) in WANTED]
    todo = list(jobs(measures, ["ingestd"], 1))
    Runner(journal, SIZES, tmp_path, timeout=240).run(todo)
    records = {record["measure"]: record for record in journal.records()}
    assert [record.get("failed") for record in records.values()] == [None] * len(WANTED)
    assert records["ingest"]["correct"]
    assert records["ingest"]["events"] == SIZES.events
    assert records["floors"]["events"] == SIZES.events
    assert records["tiny"]["batches"] == SIZES.tiny_batches
    for record in records.values():
        assert json.loads(json.dumps(record)) == record
    session = from_journal(journal)
    assert "| ingest ingestd | 1 |" in runs_table(session.records)
    assert "CPU of a batch of 10 records" in goals_table([session])
    again = Runner(journal, SIZES, tmp_path, timeout=1)
    again.run(todo)
    assert len(journal.records()) == len(todo)

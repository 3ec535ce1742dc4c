"""What a batch tells its listener, run in one process without Spark."""

from pathlib import Path

import pytest

from ingestd.ingest.upkeep.batch_summary import BatchSummary
from tests.support import crash_scene


def test_a_batch_tells_when_its_changes_were_made_and_what_feeds_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[BatchSummary] = []
    monkeypatch.setattr(
        crash_scene._Silent, "batch_finished", lambda _, summary: heard.append(summary)
    )
    crash_scene.Scene(tmp_path, "keyed").live()
    assert len(heard) == crash_scene.BATCHES
    for summary in heard:
        assert summary.topics[crash_scene.TABLE] == {("src", crash_scene.TOPIC)}
        assert {where.partition for where in summary.times.reached} == {0, 1}
        for where, (offset, _) in summary.times.reached.items():
            assert offset < summary.until["src"][crash_scene.TOPIC][where.partition]
    spans = [summary.times.events[crash_scene.TABLE] for summary in heard]
    assert all(span.oldest <= span.newest for span in spans)
    assert [span.oldest for span in spans] == sorted({span.oldest for span in spans})

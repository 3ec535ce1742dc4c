"""What a start logs of the positions that it has found."""

from pathlib import Path

import pytest

from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from tests.support.truth_rig import Truth


def test_the_log_has_the_topics_that_are_read_again_and_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    truth = Truth(tmp_path, batch_rows=1)
    for topic in ("shop.users", "shop.orders"):
        truth.kafka.add_topics(topic, numbers=(1, 2))
        truth.live()
    table = truth.table("orders")
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    caplog.clear()
    caplog.set_level("INFO")
    truth.live()
    (start,) = [record for record in caplog.records if record.message == "start_positions"]
    assert start.ctx["read_again"] == {"shop.orders": 1}  # type: ignore[attr-defined]

"""Traces of a running daemon at a real receiver of OTLP over HTTP."""

import uuid
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import run_daemon
from tests.support.ledger import Ledger
from tests.support.otlp_receiver import OtlpReceiver, values
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
EVENTS = 2_000


def test_each_batch_is_a_trace_with_its_phases_and_the_commit_of_each_table(
    tmp_path: Path, broker: DevBroker
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, EVENTS)
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern)
    with OtlpReceiver() as receiver:
        config["telemetry"] = {"traces": "otlp", "endpoint": receiver.endpoint}
        with run_daemon(config, tmp_path, until_latest=True) as daemon:
            assert daemon.wait() == 0
        batches = receiver.named("batch")
        assert sum(
            int(str(values(batch.attributes)["ingestd.batch.records"])) for batch in batches
        ) == (EVENTS)
        first = receiver.children(batches[0])
        phases = {one.name: one for one in first}
        assert {"stages", "evolve", "commit", "claims"} <= phases.keys()
        tables = {
            str(values(child.attributes)["ingestd.table"]): child
            for child in receiver.children(phases["commit"])
        }
        assert {f"{DATABASE}.account", f"{DATABASE}.entry"} <= tables.keys()
        for inner, outer in [
            (phases["commit"], batches[0]),
            *((t, phases["commit"]) for t in tables.values()),
        ]:
            assert outer.start_time_unix_nano <= inner.start_time_unix_nano
            assert inner.end_time_unix_nano <= outer.end_time_unix_nano
        assert receiver.resources[0]["ingestd.pipeline"] == config["pipeline"]["name"]

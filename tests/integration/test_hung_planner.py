"""A daemon that plans no batch any more, over topics that are quiet, is seen to hang."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, run_daemon
from tests.support.ledger import Ledger
from tests.support.pipelines import pipeline
from tests.support.processes import session_of, stopped

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
EVENTS = 500


@contextmanager
def planners_stopped(daemon: Daemon) -> Iterator[None]:
    """In the block no Python process of Spark goes on, that which plans among them."""
    family = session_of(daemon.process.pid)
    with ExitStack() as stack:
        for pid, command in family.items():
            if command.startswith("ingestd-"):
                stack.enter_context(stopped(pid))
        yield


def metric(daemon: Daemon, name: str) -> float:
    [found] = re.findall(rf"^{name} (\S+)$", daemon.get("/metrics")[1], re.MULTILINE)
    return float(found)


def test_a_query_that_hangs_before_its_first_records_is_not_live_though_nothing_waits(
    tmp_path: Path, broker: DevBroker
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, EVENTS)
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern)
    config["restart"] = {"batch-timeout": "5s"}
    catch_up(config, tmp_path)
    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until_ready()
        assert metric(daemon, "ingestd_batch_seconds_count") <= 1, "the one that finds nothing"
        with planners_stopped(daemon):
            daemon.wait_until(lambda: daemon.get("/livez")[0] == 503)
            assert daemon.get("/readyz")[0] == 503
            status = json.loads(daemon.get("/status")[1])
            assert (status["state"], status["batch"]["running"]) == ("running", None)
            assert status["batch"]["seconds_since_round"] > 5
            last = metric(daemon, "ingestd_last_round_timestamp_seconds")
        daemon.wait_until(lambda: daemon.get("/livez")[0] == 200)
        daemon.wait_until_ready()
        assert metric(daemon, "ingestd_last_round_timestamp_seconds") > last
        assert metric(daemon, "ingestd_batch_seconds_count") <= 1
        daemon.terminate()
        assert daemon.wait() == 0

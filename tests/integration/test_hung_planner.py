"""A daemon that plans no batch any more, over topics that are quiet, is seen to hang."""

import json
import re
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, run_daemon
from tests.support.daemon_progress import python_stopped
from tests.support.kafka_broker import fresh_topic
from tests.support.pipelines import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def metric(daemon: Daemon, name: str) -> float:
    [found] = re.findall(rf"^{name} (\S+)$", daemon.get("/metrics")[1], re.MULTILINE)
    return float(found)


def test_a_query_that_hangs_before_its_first_records_is_not_live_though_nothing_waits(
    tmp_path: Path, broker: DevBroker
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, fresh_topic(broker))
    config["restart"] = {"batch-timeout": "5s"}
    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until_ready()
        assert metric(daemon, "ingestd_batch_seconds_count") <= 1, "the one that finds nothing"
        with python_stopped(daemon):
            daemon.wait_until(lambda: daemon.get("/livez")[0] == 503)
            assert daemon.get("/readyz")[0] == 503
            status = json.loads(daemon.get("/status")[1])
            assert (status["state"], status["batch"]["running"]) == ("running", None)
            assert status["batch"]["seconds_since_poll"] > 5
            last = metric(daemon, "ingestd_last_poll_timestamp_seconds")
        daemon.wait_until(lambda: daemon.get("/livez")[0] == 200)
        daemon.wait_until_ready()
        assert metric(daemon, "ingestd_last_poll_timestamp_seconds") > last
        assert metric(daemon, "ingestd_batch_seconds_count") <= 1
        daemon.terminate()
        assert daemon.wait() == 0

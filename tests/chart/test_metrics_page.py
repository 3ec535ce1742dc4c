"""The page /metrics of a daemon, as a scrape gets it, before Prometheus' own judge."""

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import ingestd.registry_metrics as registry_metrics
from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.status import Status
from ingestd.kafka.ranges import OffsetRange
from tests.support.chart import ROOT, promtool

assert registry_metrics.__doc__  # importing the module registers its collectors
PROMISED = {
    "ingestd_event_time_lag_seconds",
    "ingestd_table_freshness_seconds",
    "ingestd_source_lag_records",
    "ingestd_source_lag_seconds",
    "ingestd_source_buffer_lag_records",
    "ingestd_source_buffer_lag_seconds",
    "ingestd_level0_files",
    "ingestd_sorted_runs",
    "ingestd_dead_letters_total",
}


@pytest.fixture
def page() -> Iterator[bytes]:
    status = Status("shop", "1.2.3", ["s"])
    status.batch_started("1", [OffsetRange("s", "t", 0, 0, 5)])
    status.source_answered("s", {"t": {0: 7}})
    server = HttpServer("127.0.0.1:0", status)
    server.start()
    try:
        with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=10) as answer:
            yield answer.read()
    finally:
        server.stop()


def documented() -> dict[str, str]:
    """Names and types of docs/metrics.md."""
    text = Path(ROOT / "docs" / "metrics.md").read_text()
    return dict(re.findall(r"^\| `(ingestd_\w+)` \| (\w+) \|", text, re.MULTILINE))


def test_every_metric_of_the_page_of_metrics_is_scraped_with_its_type(page: bytes) -> None:
    types = dict(re.findall(r"^# TYPE (ingestd_\w+) (\w+)$", page.decode(), re.MULTILINE))
    scraped = {name: kind for name, kind in types.items() if not name.endswith("_created")}
    assert scraped == documented()
    assert documented().keys() >= PROMISED


def test_names_and_help_pass_promtool(page: bytes) -> None:
    program = promtool()
    if program is None:
        pytest.skip("promtool is neither on the PATH nor to be had from Debian's packages")
    judge = [str(program), "check", "metrics"]
    done = subprocess.run(judge, input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    wrong = page.replace(b"ingestd_restarts_total", b"ingestd_restarts_ms")
    assert subprocess.run(judge, input=wrong, capture_output=True, check=False).returncode != 0

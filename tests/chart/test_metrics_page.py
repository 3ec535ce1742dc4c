"""The page /metrics of a daemon, as a scrape gets it, before Prometheus' own judge."""

import re
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.status import Status
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.metrics_page import MetricsPage, Scrape
from tests.support.chart import ROOT, promtool
from tests.support.prometheus import Prometheus, prometheus_program

PROMISED = {
    "ingestd_event_time_lag_seconds",
    "ingestd_table_freshness_seconds",
    "ingestd_source_lag_records",
    "ingestd_source_lag_seconds",
    "ingestd_source_pending_records",
    "ingestd_source_pending_seconds",
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
        with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=60) as answer:
            yield answer.read()
    finally:
        server.stop()


def documented() -> dict[str, str]:
    """Names and types of docs/metrics.md."""
    text = Path(ROOT / "docs" / "metrics.md").read_text()
    return dict(re.findall(r"^\| `(ingestd_\w+)` \| (\w+) \|", text, re.MULTILINE))


def test_every_metric_of_the_page_of_metrics_is_scraped_with_its_type(page: bytes) -> None:
    types = dict(re.findall(r"^# TYPE (ingestd_\w+) (\w+)$", page.decode(), re.MULTILINE))
    assert types == documented()
    assert documented().keys() >= PROMISED


@pytest.mark.skipif(prometheus_program() is None, reason="no Prometheus to be had")
def test_prometheus_scrapes_openmetrics_with_gzip(tmp_path: Path) -> None:
    answers: Counter[tuple[str, str | None]] = Counter()

    class ObservedPage(MetricsPage):
        def scrape(self, accept: str | None, accept_encoding: str | None) -> Scrape:
            scrape = super().scrape(accept, accept_encoding)
            answers[scrape.content_type.partition(";")[0], scrape.encoding] += 1
            return scrape

    server = HttpServer("127.0.0.1:0", Status("shop", "1", ["s"]), metrics=ObservedPage())
    server.start()
    port = int(server.address.rpartition(":")[2])
    with ExitStack() as stack:
        stack.callback(server.stop)
        prometheus = stack.enter_context(Prometheus(tmp_path / "p", port, labels={}, rules={}))
        end = time.monotonic() + 60
        while not prometheus.query("up == 1 and scrape_samples_scraped > 50"):
            assert time.monotonic() < end
            time.sleep(0.2)
        assert prometheus.query('{__name__="ingestd_rejected_records_total"}')
        assert not prometheus.query('{__name__=~".+_created"}')
    assert set(answers) == {("application/openmetrics-text", "gzip")}


def test_names_and_help_pass_promtool(page: bytes) -> None:
    program = promtool()
    if program is None:
        pytest.skip("promtool is neither on the PATH nor to be had from Debian's packages")
    judge = [str(program), "check", "metrics"]
    done = subprocess.run(judge, input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    wrong = page.replace(b"ingestd_restarts_total", b"ingestd_restarts_ms")
    assert subprocess.run(judge, input=wrong, capture_output=True, check=False).returncode != 0

"""The daemon from its file: settings reach it, mistakes do not start it."""

from pathlib import Path

import pytest

from ingestd.daemon import service
from ingestd.daemon.maintenance import MaintenanceSettings
from ingestd.daemon.supervisor import DaemonSettings
from ingestd.errors import ConfigError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.metrics_page import MetricsPage

TEXT = """
pipeline: {name: shop}
warehouse: {path: lake}
sources:
  shop: {kafka: {bootstrap.servers: "127.0.0.1:1"}, topics: [a], format: debezium-json}
http: {listen: "127.0.0.1:0", metrics-per-table: true, metrics-per-partition: false}
restart: {max-attempts: 3}
compaction: {mode: off, processes: 2, max-throttle: 5s}
expiry: {interval: 10min}
"""


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(service, "end_unused", lambda: calls.append("ended"))
    monkeypatch.setattr(service, "configure_logging", lambda *_, **__: None)
    return calls


def test_it_is_supervised_as_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(TEXT)
    seen: list[tuple[str, DaemonSettings]] = []

    def supervise(settings: PipelineSettings, daemon: DaemonSettings, **_: object) -> int:
        seen.append((settings.name, daemon))
        return 5

    monkeypatch.setattr(service, "supervise", supervise)
    assert service.serve(file, until_latest=True, take_over=False) == 5
    [(name, daemon)] = seen
    assert (name, daemon.restarts.max_attempts, daemon.until_latest) == ("shop", 3, True)
    assert daemon.maintenance == MaintenanceSettings(
        mode="off", processes=2, max_throttle=5.0, expires=True, expiry_interval=600.0
    )
    assert daemon.metrics == MetricsPage(per_table=True, per_partition=False)
    assert ended == ["ended"]


def test_a_mistake_ends_the_jvm_that_was_begun(tmp_path: Path, ended: list[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("pipelin: {}")
    with pytest.raises(ConfigError):
        service.serve(file, until_latest=False, take_over=True)
    assert ended == ["ended"]

import logging
from pathlib import Path

import pytest

from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.reload import changed, reread, taken_over

TEXT = """
pipeline: {name: shop, trigger: 1s}
warehouse: {path: lake}
sources:
  shop: {kafka: {bootstrap.servers: "127.0.0.1:1"}, topics: [a], format: debezium-json}
"""


def events(caplog: pytest.LogCaptureFixture) -> dict[str, dict[str, object]]:
    return {one.getMessage(): getattr(one, "ctx", {}) for one in caplog.records}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_text(TEXT)
    return path


def test_new_topics_tables_and_limits_are_taken_over(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = load_config(file)
    file.write_text(TEXT.replace("topics: [a]", "topics: [a, b], max-offsets-per-trigger: 5"))
    loaded = reread(file, running)
    assert loaded is not None
    before = pipeline_settings(running)
    after = taken_over(pipeline_settings(loaded), before)
    assert changed(after, before) == ["sources", "max_offsets_per_trigger"]
    assert events(caplog) == {}


def test_what_needs_a_restart_is_named_and_stays(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = load_config(file)
    file.write_text(
        TEXT.replace("name: shop", "name: other").replace("path: lake", "path: sea")
        + 'http: {listen: "127.0.0.1:9"}\ncompaction: {mode: inline}\n'
        + "telemetry: {traces: otlp}\n"
    )
    loaded = reread(file, running)
    assert loaded is not None
    named = events(caplog)["reload_needs_restart"]["settings"]
    assert named == ["name", "warehouse", "checkpoint", "http", "compaction", "telemetry"]
    before = pipeline_settings(running)
    assert taken_over(pipeline_settings(loaded), before) == before


def test_a_file_with_a_mistake_changes_nothing(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = load_config(file)
    file.write_text(TEXT + "sauces: {}\n")
    with caplog.at_level(logging.ERROR):
        assert reread(file, running) is None
    assert "sauces" in str(events(caplog)["reload_refused"]["message"])

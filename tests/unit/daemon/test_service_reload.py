import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ingestd.config.effective import effective_settings
from ingestd.config.load import load_config
from ingestd.config.model import Config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.service import (
    _FIXED,
    _FIXED_SECTIONS,
    _Reload,
    changed,
    merged_settings,
    reread,
    taken_over,
    waiting_keys,
)
from ingestd.errors import ConfigError

TEXT = """
pipeline: {name: shop, trigger: 1s}
warehouse: {path: lake}
sources:
  shop: {kafka: {bootstrap.servers: "127.0.0.1:1"}, topics: [a], format: debezium-json}
"""


def events(caplog: pytest.LogCaptureFixture) -> dict[str, dict[str, object]]:
    return {record.getMessage(): getattr(record, "ctx", {}) for record in caplog.records}


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
    loaded = reread(file)
    assert loaded is not None
    before = pipeline_settings(running)
    after = taken_over(pipeline_settings(loaded), before)
    assert changed(after, before) == ["sources", "max_offsets_per_trigger"]
    assert events(caplog) == {}


def test_the_console_shows_what_is_in_effect_after_a_reload(file: Path) -> None:
    running = effective_settings(load_config(file))
    file.write_text(TEXT.replace("path: lake", "path: sea").replace("trigger: 1s", "trigger: 9s"))
    shown = merged_settings(effective_settings(load_config(file)), running)
    values = {setting.key: setting.value for setting in shown}
    assert (values["warehouse.path"], values["pipeline.trigger"]) == ("lake", "9s")
    assert values.keys() == {setting.key for setting in running}
    assert len(shown) == len(running)


def test_what_needs_a_restart_is_named_and_stays(file: Path) -> None:
    running = load_config(file)
    file.write_text(
        TEXT.replace("name: shop", "name: other").replace("path: lake", "path: sea")
        + 'http: {listen: "127.0.0.1:9"}\ncompaction: {mode: inline}\n'
        + "telemetry: {traces: otlp}\nprocessing: {worker-memory: 2gb}\n"
    )
    loaded = reread(file)
    assert loaded is not None
    named = waiting_keys(loaded, running)
    keys = ["pipeline.name", "warehouse.path", "processing.worker-memory"]
    assert named == [*keys, "http", "compaction", "telemetry"]
    before = pipeline_settings(running)
    assert taken_over(pipeline_settings(loaded), before) == before


def test_a_file_with_a_mistake_changes_nothing(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(TEXT + "sauces: {}\n")
    with caplog.at_level(logging.ERROR):
        assert reread(file) is None
    assert "sauces" in str(events(caplog)["reload_refused"]["message"])
    assert all(getattr(record, "is_answer", False) for record in caplog.records), "never summed up"


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        (TEXT.replace("name: shop", "name: other"), {"reload_without_effect"}),
        (
            TEXT.replace("name: shop", "name: other").replace("[a]", "[a, b]"),
            {"reload_needs_restart", "reloaded"},
        ),
        (
            TEXT.replace("name: shop", "name: other") + "logging: {level: DEBUG}\n",
            {"reload_needs_restart", "reloaded"},
        ),
        (TEXT, {"reloaded"}),
    ],
)
def test_a_reload_that_changed_only_the_name_says_so(
    file: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, text: str,
    logged: set[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("ingestd.daemon.service.configure_logging", lambda *_, **__: None)
    running = load_config(file)
    reload = _Reload(file, running, pipeline_settings(running))
    file.write_text(text)
    with caplog.at_level(logging.INFO, "ingestd.daemon.service"):
        reload()
    assert events(caplog).keys() == logged
    for event in logged - {"reloaded"}:
        assert events(caplog)[event]["settings"] == ["pipeline.name"]
        assert "pipeline.formerly" in str(events(caplog)[event]["note"])


EVERYTHING = """
pipeline: {name: shop}
warehouse: {path: lake, catalog: {metastore: rest, uri: "http://127.0.0.1:1", warehouse: w,
                                  token: t}}
sources:
  shop: {kafka: {bootstrap.servers: "127.0.0.1:1"}, topics: [a], format: debezium-avro,
         schema-registry: {url: "http://127.0.0.1:1"}}
tables: {orders: {}}
"""
NO_VALUE = {
    "sources.shop.schema_registry.bearer_auth_scope",
    "sources.shop.schema_registry.bearer_auth_client_id",
    "sources.shop.schema_registry.bearer_auth_client_secret",
    "sources.shop.schema_registry.bearer_auth_issuer_endpoint_url",
    "sources.shop.format",
    "sources.shop.type_mapping",
    "sources.shop.startup_specific_offsets",
    "sources.shop.bounded_specific_offsets",
    "routing.rules",
    "tables.orders.where",
}
"""What another value made up here is refused for: that is to notice it as well."""


def another(value: Any) -> Any:
    """A value that differs, of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, dict):
        return {**value, "x": "1"}
    return "7" if value is None else value + ("x" if isinstance(value, str) else ("x",))


def with_another_value(model: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The model with one leaf changed, for each leaf, and where that is."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        inner = value if isinstance(value, dict) and value else {}
        if isinstance(value, BaseModel):
            for where, one in with_another_value(value, f"{path}{name}."):
                yield where, model.model_copy(update={name: one})
        elif inner and all(isinstance(value, BaseModel) for value in inner.values()):
            for key, held in inner.items():
                for where, one in with_another_value(held, f"{path}{name}.{key}."):
                    yield where, model.model_copy(update={name: {**inner, key: one}})
        else:
            yield f"{path}{name}", model.model_copy(update={name: another(value)})


def test_every_key_is_taken_over_or_said_to_need_a_restart(file: Path) -> None:
    file.write_text(EVERYTHING)
    loaded = load_config(file)
    before = pipeline_settings(loaded)
    unnoticed, refused, keys = set(), set(), 0
    for where, config in with_another_value(loaded.config):
        keys += 1
        try:
            after = pipeline_settings(replace(loaded, config=config))
        except (ConfigError, AttributeError):
            refused.add(where)
            continue
        if not changed(after, before):
            unnoticed.add(where)
    assert keys > 100
    assert refused == NO_VALUE
    unnoticed.remove("warehouse.catalog.case_sensitive")  # says nothing to a REST catalog
    unnoticed -= {"warehouse.catalog.user", "warehouse.catalog.password"}  # of a JDBC catalog
    # Without an OAuth server it only names what the other keys say.
    unnoticed.discard("sources.shop.schema_registry.bearer_auth_credentials_source")
    unnoticed.remove("warehouse.shared")  # for the check of the file, which is done each time
    sections = {one.partition(".")[0] for one in unnoticed}
    assert sections == {"logging", *_FIXED_SECTIONS}
    assert sections <= Config.model_fields.keys()
    assert {*_FIXED} <= {name for name in dir(before) if not name.startswith("_")}

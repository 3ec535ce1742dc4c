from pathlib import Path

import pytest

from ingestd import log
from ingestd.config.effective import Setting, effective_settings, plain_secret_settings
from ingestd.config.load import LoadedConfig, load_config

FILE = """
warehouse: {path: "${env:LAKE}"}
sources:
  shop:
    kafka:
      bootstrap.servers: localhost:9092
      sasl.password: ${env:PW}
      ssl.key.password: hunter23
    topics: [orders]
    format: debezium-json
tables:
  orders: {options: {bucket: 4}, schema: {column-types: {a: "decimal(12,2)"}}}
"""
ENVIRON = {"LAKE": "/secret-lake", "PW": "hunter22", "INGESTD__PIPELINE__TRIGGER": "90s"}


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedConfig:
    monkeypatch.setattr(log, "_secrets", {})
    path = tmp_path / "f.yaml"
    path.write_text(FILE, encoding="utf-8")
    return load_config(path, ENVIRON)


def by_key(loaded: LoadedConfig) -> dict[str, Setting]:
    return {
        effective_setting.key: effective_setting for effective_setting in effective_settings(loaded)
    }


def test_every_value_shows_where_it_is_from(loaded: LoadedConfig) -> None:
    found = by_key(loaded)
    assert found["pipeline.trigger"].value == "90s"
    assert found["pipeline.trigger"].origin == "environment INGESTD__PIPELINE__TRIGGER"
    assert found["restart.window"] == Setting("restart.window", "10min", "default")
    assert found["sources.shop.format"].origin.endswith("f.yaml:10")


def test_references_are_shown_as_they_were_written(loaded: LoadedConfig) -> None:
    found = by_key(loaded)
    assert found["sources.shop.kafka.sasl.password"].value == "${env:PW}"
    assert found["warehouse.path"].value == "${env:LAKE}"


def test_no_secret_is_shown(loaded: LoadedConfig) -> None:
    shown = repr(effective_settings(loaded))
    assert "hunter" not in shown
    assert "secret-lake" not in shown


def test_plain_secrets_are_found_and_references_are_not(loaded: LoadedConfig) -> None:
    assert [plain_secret.key for plain_secret in plain_secret_settings(loaded)] == [
        "sources.shop.kafka.ssl.key.password"
    ]
    assert "hunter" not in repr(plain_secret_settings(loaded))


def test_a_table_shows_only_what_it_sets(loaded: LoadedConfig) -> None:
    found = {key: one.value for key, one in by_key(loaded).items() if key.startswith("tables.")}
    assert found == {
        "tables.orders.options.bucket": "4",
        "tables.orders.schema.column-types.a": "DECIMAL(12, 2)",
    }

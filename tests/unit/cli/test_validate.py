import json
import socket
import sys
from pathlib import Path

import pytest

from ingestd import log
from ingestd.paimon.spec.data_types import parse_type
from tests.support.command_line import run_command
from tests.support.native_tables import native_table

Capture = pytest.CaptureFixture[str]
FILE = """
warehouse: {path: lake, database: db}
sources:
  shop:
    kafka: {bootstrap.servers: "127.0.0.1:PORT", sasl.password: hunter22}
    topics: [orders]
    format: debezium-json
tables: {t: {}}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(log, "_secrets", {})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "f.yaml"
    path.write_text(FILE.replace("PORT", str(port)), encoding="utf-8")
    return path


def test_every_setting_is_shown_with_its_origin(config: Path, capsys: Capture) -> None:
    done = run_command(capsys, "validate", "-c", config)
    assert done.code == 0
    assert "restart.max-attempts" not in done.out
    assert "All other settings have their defaults; --all shows them." in done.out
    assert f"{config}:7" in done.out
    assert done.out.rstrip().endswith("is fine, with 1 warning.")
    everything = run_command(capsys, "validate", "-c", config, "--all").out
    assert "restart.max-attempts" in everything
    assert "--all" not in everything


def test_secrets_in_plain_text_are_masked_and_warned_of(config: Path, capsys: Capture) -> None:
    done = run_command(capsys, "validate", "-c", config)
    assert "sources.shop.kafka.sasl.password is a secret in plain text" in done.err
    assert "hunter22" not in done.out + done.err
    document = run_command(capsys, "validate", "-c", config, "--json").out
    assert "hunter22" not in document
    assert len(json.loads(document)["warnings"]) == 1


def test_json_has_keys_values_and_origins(
    config: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGESTD__PIPELINE__TRIGGER", "3s")
    document = json.loads(run_command(capsys, "validate", "-c", config, "--json").out)
    assert document["valid"] is True
    settings = {setting["key"]: setting for setting in document["settings"]}
    assert settings["pipeline.trigger"] == {
        "key": "pipeline.trigger",
        "value": "3s",
        "origin": "environment INGESTD__PIPELINE__TRIGGER",
    }


def test_a_wrong_file_is_two_and_says_why(config: Path, capsys: Capture) -> None:
    config.write_text("warehose: {}\n", encoding="utf-8")
    done = run_command(capsys, "validate", "-c", config)
    assert done.code == 2
    assert "did you mean 'warehouse'?" in done.err
    assert "Traceback" not in done.err
    document = json.loads(run_command(capsys, "validate", "-c", config, "--json").out)
    assert document["valid"] is False
    assert "warehose" in document["error"]


def test_a_file_that_is_not_there_is_two(tmp_path: Path, capsys: Capture) -> None:
    assert run_command(capsys, "validate", "-c", tmp_path / "none.yaml").code == 2


def test_static_checks_touch_nothing(config: Path, capsys: Capture) -> None:
    run_command(capsys, "validate", "-c", config)
    assert [path.name for path in config.parent.iterdir()] == ["f.yaml"]


@pytest.mark.timeout(120)
def test_online_checks_ask_brokers_warehouse_and_tables(
    config: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.cli.validate._PROBE_SECONDS", 1.0)
    done = run_command(capsys, "validate", "-c", config, "--online", "--json")
    assert done.code == 3
    checks = {one["check"]: one for one in json.loads(done.out)["online"]}
    assert checks["source shop"]["ok"] is False
    assert checks["warehouse"]["ok"] is True
    assert checks["table t"]["found"] == "does not exist yet"
    assert not list((config.parent / "lake").rglob("*probe*"))
    text = run_command(capsys, "validate", "-c", config, "--online").out.splitlines()
    assert text[-2] == f"{config} FAILED 1 check:"
    assert text[-1].startswith("  source shop: ")


@pytest.mark.timeout(120)
def test_online_checks_refuse_a_table_that_could_not_be_written(
    config: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.cli.validate._PROBE_SECONDS", 1.0)
    options = {"data-evolution.enabled": "true", "bucket": "1"}
    lake = config.parent / "lake"
    native_table(lake, [("id", parse_type("INT").root)], keys=["id"], options=options)
    done = run_command(capsys, "validate", "-c", config, "--online", "--json")
    checks = {one["check"]: one for one in json.loads(done.out)["online"]}
    assert checks["table t"]["ok"] is False
    assert "data-evolution" in checks["table t"]["found"]


@pytest.mark.parametrize(
    ("uri", "driver", "message"),
    [
        ("jdbc:postgresql://127.0.0.1:1/db", True, "catalog jdbc:postgresql://127.0.0.1:1/db: "),
        ("jdbc:postgresql://127.0.0.1:1/db", False, "pip install 'ingestd-paimon[jdbc]'"),
        ("jdbc:sqlite:/nowhere/catalog.db", True, "/nowhere/catalog.db: unable to open"),
    ],
)
def test_online_checks_name_the_database_of_a_catalog(
    config: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, uri: str, driver: bool,
    message: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("ingestd.cli.validate._PROBE_SECONDS", 0.1)
    if not driver:
        monkeypatch.setitem(sys.modules, "psycopg", None)
    catalog = f"catalog: {{metastore: jdbc, uri: '{uri}'}}, database"
    config.write_text(config.read_text().replace("database", catalog), encoding="utf-8")
    done = run_command(capsys, "validate", "-c", config, "--online", "--json")
    checks = {one["check"]: one for one in json.loads(done.out)["online"]}
    assert checks["catalog"]["ok"] is False
    assert message in checks["catalog"]["found"]


def test_table_options_without_effect_are_warned_of(config: Path, capsys: Capture) -> None:
    options = "tables: {t: {options: {sink.parallelism: 2, bucket: 4}}}"
    config.write_text(config.read_text().replace("tables: {t: {}}", options), encoding="utf-8")
    done = run_command(capsys, "validate", "-c", config)
    assert done.code == 0
    assert "tables.t.options.sink.parallelism has no effect: jobs of Flink" in done.err
    assert "bucket has no effect" not in done.err

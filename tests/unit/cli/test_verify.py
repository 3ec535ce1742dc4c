import json
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put
from tests.support.pipelines import pipeline

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = native_table(tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"])
    put(table, [{"id": 1, "v": "a"}])
    put(table, [{"id": 2, "v": "b"}])
    return tmp_path


def test_a_sound_table_is_zero(warehouse: Path, capsys: Capture) -> None:
    done = run_command(capsys, "verify", warehouse, "db.t")
    assert done.code == 0
    assert "sound" in done.out
    assert json.loads(run_command(capsys, "verify", warehouse, "db.t", "--json").out) == []


def test_a_damaged_table_is_one_and_names_the_file(warehouse: Path, capsys: Capture) -> None:
    victim = min((warehouse / "db.db" / "t" / "bucket-0").glob("data-*"))
    victim.unlink()
    done = run_command(capsys, "verify", warehouse, "db.t", "--json")
    assert done.code == 1
    findings = json.loads(done.out)
    assert any(victim.name in finding["where"] + finding["message"] for finding in findings)
    assert set(findings[0]) == {"severity", "code", "where", "message"}
    text = run_command(capsys, "verify", warehouse, "db.t")
    assert text.code == 1
    assert victim.name in text.out


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        ((), "name a table"),
        (("db.t", "--recount"), "only go with --against-kafka"),
        (("db.t", "-c", "ingestd.yaml"), "only go with --against-kafka"),
        (("db.t", "--against-kafka"), "needs --config"),
        (("db.t", "--against-kafka", "-c", "ingestd.yaml", "--snapshot", "1"), "no --snapshot"),
        (("--against-kafka", "-c", "ingestd.yaml", "--metastore", "rest"), "names the catalog"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    warehouse: Path, capsys: Capture, arguments: tuple[str, ...], way_out: str
) -> None:
    done = run_command(capsys, "verify", warehouse, *arguments)
    assert done.code == 2
    assert way_out in done.err


def test_tables_that_the_pipeline_has_not_written_are_refused(
    warehouse: Path, capsys: Capture, tmp_path: Path
) -> None:
    config = tmp_path / "ingestd.yaml"
    document = pipeline(tmp_path, "127.0.0.1:1", "a")
    document["warehouse"]["database"] = "db"
    config.write_text(yaml.safe_dump(document))
    done = run_command(capsys, "verify", warehouse, "db.t", "--against-kafka", "-c", config)
    assert done.code == 2
    assert "no record of pipeline shop in db.t; it has written: none" in done.err
    done = run_command(capsys, "verify", warehouse, "--against-kafka", "-c", config)
    assert "no record of pipeline shop in any table of database db" in done.err

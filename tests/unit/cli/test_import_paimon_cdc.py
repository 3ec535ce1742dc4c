import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from ingestd.config.load import load_config
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]
JOB = r"""<FLINK_HOME>/bin/flink run -d \
    -D execution.checkpointing.interval=10s \
    /path/to/paimon-flink-action-1.3.jar \
    kafka_sync_database \
    --warehouse s3://lake/warehouse \
    --database=ods \
    --including_tables 'item|order_.*' \
    --kafka_conf properties.bootstrap.servers=b0:9092,b1:9092 \
    --kafka_conf topic=order\;logistic_order\;user \
    --kafka_conf properties.group.id=g \
    --kafka_conf=value.format=canal-json \
    --kafka_conf scan.startup.mode=earliest-offset \
    --table_conf bucket=4 \
    --table_conf changelog-producer=input \
    --table_conf sink.parallelism=4
"""


def test_the_result_loads_and_says_what_it_left_out(tmp_path: Path, capsys: Capture) -> None:
    done = run_command(capsys, "import-paimon-cdc", JOB)
    assert (done.code, done.err) == (0, "")
    path = tmp_path / "f.yaml"
    path.write_text(done.out)
    config = load_config(path, {}).config
    assert config.sources["kafka"].topics == ("order", "logistic_order", "user")
    assert config.defaults.options == {"bucket": "4", "changelog-producer": "input"}
    assert config.pipeline.trigger == 10
    comments = [line for line in done.out.splitlines() if line.startswith("#")]
    assert any("--table_conf sink.parallelism=4" in line for line in comments)


def test_what_is_essential_is_one_and_reported(capsys: Capture) -> None:
    done = run_command(
        capsys,
        "import-paimon-cdc",
        JOB + "--catalog_conf metastore=made_up --metadata_column made_up",
    )
    assert done.code == 1
    assert "metastore=made_up" in done.err
    assert "--metadata_column made_up" in done.err
    assert yaml.safe_load(done.out)["warehouse"]["path"] == "s3://lake/warehouse"


def test_standard_input_is_read_and_json_has_all_of_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(JOB))
    done = run_command(capsys, "import-paimon-cdc", "-", "--json")
    document = json.loads(done.out)
    assert document["complete"] is True
    assert yaml.safe_load(document["yaml"]) == document["config"]
    assert {"argument", "text", "essential"} == document["notes"][0].keys()


def test_a_second_command_is_not_lost_in_silence(capsys: Capture) -> None:
    done = run_command(capsys, "import-paimon-cdc", JOB.replace(r"topic=order\;", "topic=order;"))
    assert done.code == 1
    assert ";logistic_order" in done.err
    done = run_command(capsys, "import-paimon-cdc", JOB.rstrip() + " > log 2>&1 &")
    assert done.code == 0
    assert "> log" in done.out


def test_a_password_is_not_repeated_unless_that_is_wanted(capsys: Capture) -> None:
    jaas = 'x.PlainLoginModule required username="me" password="hunter27";'
    job = f"{JOB.rstrip()} --kafka_conf 'properties.sasl.jaas.config={jaas}'"
    done = run_command(capsys, "import-paimon-cdc", job)
    assert done.code == 0
    assert "hunter27" not in done.out + done.err
    assert "${env:KAFKA_PASSWORD}" in done.out
    kept = run_command(capsys, "import-paimon-cdc", job, "--keep-secrets")
    assert yaml.safe_load(kept.out)["sources"]["kafka"]["kafka"]["sasl.password"] == "hunter27"


def test_another_command_is_two(capsys: Capture) -> None:
    done = run_command(capsys, "import-paimon-cdc", "flink run x.jar mysql_sync_table")
    assert done.code == 2
    assert "does not read Kafka" in done.err

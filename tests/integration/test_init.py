"""`ingestd init` against a real broker: what it writes is valid, and what the messages call for."""

import json
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.kafka_broker import fresh_topic, produce

pytestmark = pytest.mark.integration
Capture = pytest.CaptureFixture[str]


def test_formats_keys_and_types_are_found_and_the_file_is_valid(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    changes, plain = fresh_topic(broker), fresh_topic(broker)
    produce(broker, changes, [(key(id=n), event("c", {"id": n, "v": "x"})) for n in range(3)])
    produce(broker, plain, [(None, b'{"at": 1.5, "who": "a"}')])
    file = tmp_path / "ingestd.yaml"
    secret = "planted-init-secret"
    done = run_command(
        capsys,
        *("init", file, "--bootstrap", broker.bootstrap, "--topic", changes, "--topic", plain),
        *("--name", "shop", "--warehouse", tmp_path / "lake", "--kafka", f"sasl.password={secret}"),
        "--json",
    )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert {source["format"]: source["topics"] for source in document["sources"]} == {
        "debezium-json": [changes],
        "json": [plain],
    }
    columns = {table["table"]: table["columns"] for table in document["tables"]}
    assert {"id": "BIGINT NOT NULL", "v": "STRING"} in columns.values()
    assert {"at": "DOUBLE", "who": "STRING"} in columns.values()
    assert secret not in file.read_text() + done.out
    assert not (tmp_path / "lake").exists()
    validated = run_command(capsys, "validate", "-c", file)
    assert (validated.code, "KAFKA_SASL_PASSWORD is not set" in validated.err) == (2, True)
    file.write_text(file.read_text().replace("${env:KAFKA_SASL_PASSWORD}", secret))
    assert run_command(capsys, "validate", "-c", file).code == 0

"""A newcomer's first pipeline: the README's file and commands, with a real broker."""

import uuid
from pathlib import Path

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.dev.broker import DevBroker
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.daemon import ingestd
from tests.support.kafka_broker import produce
from tests.support.readme import block, commands

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
Capture = pytest.CaptureFixture[str]


def test_the_first_pipeline_of_the_readme_brings_rows(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    mine = f"shop{uuid.uuid4().hex[:8]}"
    orders = SourceTable("shop", "public", "orders")
    rows = [(key(id=n), event("c", {"id": n, "status": "open"}, table=orders)) for n in range(20)]
    broker.create_topic(f"{mine}.public.orders", 1)
    produce(broker, f"{mine}.public.orders", rows)
    places = {
        "broker-0:9092": broker.bootstrap,
        "/data": str(tmp_path),
        r"shop\.": rf"{mine}\.",
    }
    text = block("A first pipeline", "yaml")
    for shown, real in places.items():
        assert shown in text
        text = text.replace(shown, real)
    file = tmp_path / "ingestd.yaml"
    file.write_text(text + "http: {listen: '127.0.0.1:0'}\n")
    proposed = tmp_path / "proposed.yaml"
    lines = [words for words in commands("A first pipeline") if words[0] != "parse"]
    done = {}
    for words in lines:
        real = [str(file) if one == "ingestd.yaml" else one for one in words]
        if words[0] == "init":
            real = ["init", str(proposed), "--bootstrap", broker.bootstrap, "--topic-pattern",
                    rf"{mine}\..*", "--warehouse", str(tmp_path / "w")]  # fmt: skip
        if words[0] in ("watch", "import-paimon-cdc"):
            continue
        if words[0] == "run":
            ran = ingestd(*real, "--until-latest", timeout=400)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            continue
        done[words[0]] = run_command(capsys, *real)
        assert done[words[0]].code == 0, done[words[0]].err
    assert "is fine" in done["validate"].out
    assert "ods.orders would be created" in done["plan"].out
    assert f"{mine}: 1 topics of debezium-json" in done["init"].out
    assert run_command(capsys, "validate", "-c", proposed).code == 0
    read = run_command(capsys, "read", tmp_path / "warehouse", "ods.orders")
    assert len(read.out.splitlines()) == 20

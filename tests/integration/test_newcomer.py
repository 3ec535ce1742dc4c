"""A newcomer's first pipeline: the README's file and all of its commands, at a real broker."""

import io
import re
import shlex
import sys
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from ingestd.cdc.base import SourceTable
from ingestd.dev.broker import DevBroker
from tests.support.change_events import event, key
from tests.support.code_blocks import shown
from tests.support.command_line import Done, run_command
from tests.support.daemon import run_daemon
from tests.support.kafka_broker import produce
from tests.support.readme import block, shape

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
Capture = pytest.CaptureFixture[str]
PAGE = "README.md"
JOB = """flink run paimon-flink-action.jar kafka_sync_database --warehouse /lake --database ods \
--kafka_conf properties.bootstrap.servers=broker-0:9092 --kafka_conf topic=orders \
--kafka_conf value.format=debezium-json --kafka_conf scan.startup.mode=earliest-offset
"""


def lines(first: str) -> list[str]:
    """The command lines of a block, without their comments."""
    found = [line.split("  #")[0].strip() for line in shown(PAGE, first).text.splitlines()]
    assert all(line.startswith("ingestd ") for line in found)
    return found


def run_line(line: str, capsys: Capture, folder: Path, more: list[str]) -> Done:
    """A line with its redirections, in a folder; `more` words are given as well."""
    plain, _, target = line.partition(" > ")
    plain, _, source = plain.partition(" < ")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "stdin", io.StringIO(Path(source).read_text() if source else ""))
        done = run_command(capsys, *shlex.split(plain)[1:], *more)
    if target:
        (folder / target).write_text(done.out)
    assert done.code == 0, (line, done.err)
    return done


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
    text = block("First pipeline", "yaml")
    for word, real in places.items():
        assert word in text
        text = text.replace(word, real)
    (tmp_path / "ingestd.yaml").write_text(text)
    proposed = tmp_path / "proposed"
    proposed.mkdir()
    other = ["--topic-pattern", rf"{mine}\..*", "--warehouse", str(tmp_path / "w")]
    done = {}
    written = tmp_path / "warehouse" / "ods.db" / "orders" / "snapshot" / "LATEST"
    with ExitStack() as stack:
        for line in lines("ingestd init"):
            verb = line.split()[1]
            folder, more = tmp_path, []
            if verb == "run":
                daemon = stack.enter_context(run_daemon(yaml.safe_load(text), tmp_path / "daemon"))
                daemon.wait_until(written.exists)
                continue
            if verb == "init":
                folder, more = proposed, other
            if verb == "watch":
                more = [f"http://127.0.0.1:{daemon.port}", "--count", "1"]
            line = line.replace("broker-0:9092", broker.bootstrap)
            done[verb] = run_line(line, capsys, folder, more)
        daemon.terminate()
        assert daemon.wait() == 0
    assert "is fine" in done["validate"].out
    assert f"{mine}: 1 topic of debezium-json" in done["init"].out
    assert "pipeline=shop" in done["watch"].out
    assert run_command(capsys, "validate", "-c", proposed / "ingestd.yaml").code == 0
    printed = [row.rstrip() for row in done["plan"].out.splitlines()]
    wanted = [shape(row.rstrip()) for row in block("First pipeline", "text").splitlines()]
    assert [one.pattern for one in wanted if not any(map(one.fullmatch, printed))] == [], printed
    read = run_command(capsys, "read", tmp_path / "warehouse", "ods.orders")
    assert len(read.out.splitlines()) == 20


def test_the_other_commands_of_the_first_pipeline_work(
    broker: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    topic = f"shop{uuid.uuid4().hex[:8]}.public.orders"
    orders = SourceTable("shop", "public", "orders")
    value = event("c", {"id": 7, "status": "open"}, table=orders)
    broker.create_topic(topic, 1)
    produce(broker, topic, [(key(id=7), value)])
    (tmp_path / "kafka_sync_database.sh").write_text(JOB)
    (tmp_path / "messages.jsonl").write_bytes(value + b"\n")
    imported, parsed, asked = lines("ingestd import-paimon-cdc")
    run_line(imported, capsys, tmp_path, [])
    assert "debezium-json" in (tmp_path / "ingestd.yaml").read_text()
    assert "open" in run_line(parsed, capsys, tmp_path, []).out
    text = block("First pipeline", "yaml").replace("broker-0:9092", broker.bootstrap)
    real = text.replace(r"shop\.public", re.escape(topic.partition(".")[0]) + r"\.public")
    (tmp_path / "ingestd.yaml").write_text(real)
    asked = asked.replace("shop.public.orders", topic)
    assert "open" in run_line(asked, capsys, tmp_path, []).out

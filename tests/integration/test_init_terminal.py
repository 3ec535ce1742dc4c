"""`ingestd init` in a real terminal, with a real broker: what it asks, and the file it ends in.

What is seen is kept in tests/golden/terminal/init.txt; with INGESTD_RENEW=1 it is written again.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.dev.broker import DevBroker
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.kafka_broker import produce, running_broker
from tests.support.terminal import GOLDEN, Scene, command, environment, look
from tests.support.tmux import Tmux, has_tmux

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not has_tmux(), reason="tmux is not installed"),
]
Capture = pytest.CaptureFixture[str]
BROKERS = "broker-0:9092"
ASKED = Scene(
    ("init",),
    talk=(
        ("Kafka brokers", "127.0.0.1:1", "Enter"),
        ("Connect to", BROKERS, "Enter"),
        ("Topics", "sohp.*", "Enter"),
        ("no topic matches", "Enter"),
        ("Name of the pipeline", "My Shop", "Enter"),
        ("use at most", "Enter"),
        ("Warehouse", "ftp://lake", "Enter"),
        ("ftp", "lake", "Enter"),
        ("Database", "ods", "Enter"),
    ),
    line=False,
)

_SOMETIMES = re.compile(r" \(after \d+ms in state CONNECT\)")
"""What Kafka's client appends to a refused connection, or not."""


@pytest.fixture(scope="module")
def shop() -> Iterator[DevBroker]:
    """A broker with the topics of a shop and nothing else."""
    with running_broker() as broker:
        for name in ("items", "orders"):
            broker.create_topic(f"shop.public.{name}", 1)
            source = SourceTable("shop", "public", name)
            rows = [(key(id=n), event("c", {"id": n, "v": "x"}, table=source)) for n in range(3)]
            produce(broker, f"shop.public.{name}", rows)
        yield broker


def test_it_asks_and_flags_make_the_same_file_that_runs(
    shop: DevBroker, tmp_path: Path, capsys: Capture
) -> None:
    with Tmux(tmp_path) as tmux:
        seen = look(ASKED, tmp_path, tmux, {BROKERS: shop.bootstrap})
    seen = _SOMETIMES.sub("", seen)
    kept = GOLDEN / "init.txt"
    if "INGESTD_RENEW" in os.environ:
        kept.write_text(seen, "utf-8")
    assert seen == kept.read_text("utf-8")
    asked, given = tmp_path / "ingestd.yaml", tmp_path / "given.yaml"
    flags = ("--warehouse", "lake", "--database", "ods", "--topic-pattern", r"shop\.public\..*")
    done = run_command(capsys, "init", given, "--bootstrap", shop.bootstrap, *flags)
    assert (done.code, given.read_text()) == (0, asked.read_text())
    assert run_command(capsys, "validate", "-c", asked).code == 0
    ran = subprocess.run(
        command(("run", "-c", str(asked), "--until-latest", "--json")),
        env={**os.environ, "INGESTD__HTTP__LISTEN": "127.0.0.1:0"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert all(isinstance(json.loads(line), dict) for line in ran.stdout.splitlines())
    for name in ("items", "orders"):
        rows = run_command(capsys, "read", tmp_path / "lake", f"ods.{name}").out
        assert rows.count('"v":"x"') == 3


def test_an_interrupt_of_the_questions_writes_nothing(shop: DevBroker, tmp_path: Path) -> None:
    with Tmux(tmp_path) as tmux:
        words = command(("init", "--bootstrap", shop.bootstrap))
        window = tmux.run(words, cwd=tmp_path, env=environment(()))
        window.wait_for("Topics")
        window.press("C-c")
        assert window.code() == 130
        assert (
            "interrupted: init of ingestd.yaml has stopped. Nothing was written." in window.text()
        )
    assert not (tmp_path / "ingestd.yaml").exists()

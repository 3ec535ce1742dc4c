"""`ingestd verify --against-kafka` after a daemon's work, with a real broker."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import LocalFileIO
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.kafka_broker import (
    cut_log,
    delete_topic,
    produce_transaction,
    running_broker,
)
from tests.support.ledger import PARTITIONS, Ledger
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
EVENTS = 4_000


@pytest.fixture(scope="module")
def own_broker() -> Iterator[DevBroker]:
    """A broker that may be killed."""
    with running_broker() as running:
        yield running


def words(folder: Path) -> tuple[Any, ...]:
    """The command with the file that the daemon had."""
    return ("verify", folder / "warehouse", "--against-kafka", "-c", folder / "ingestd.yaml")


Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    """The command with its exit code and its document."""

    def verified(*arguments: str) -> tuple[int, dict[str, Any]]:
        done = run_command(capsys, *words(tmp_path), "--json", *arguments)
        assert done.code in (0, 1), done.out + done.err
        return done.code, json.loads(done.out)

    return verified


def codes(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(finding["code"], finding["where"]) for finding in document["findings"]}


def test_offsets_and_rows_are_compared_with_a_real_log(
    own_broker: DevBroker, tmp_path: Path, verify: Verify, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(f"v{uuid.uuid4().hex[:8]}", EVENTS, accounts=300)
    ledger.produce(own_broker)
    # It ends with something that is no record: the last one is some offsets before the end.
    account, entry = f"{ledger.prefix}.bank.account", f"{ledger.prefix}.bank.entry"
    produce_transaction(own_broker, account, [(b"k", b"{")] * 2, commit=False)
    document = pipeline(tmp_path, own_broker.bootstrap, ledger.pattern, batch_rows=EVENTS // 2)
    catch_up(document, tmp_path)
    code, sound = verify("--recount")
    assert (code, sound["findings"]) == (0, [])
    assert len(sound["logs"]) == 2 * PARTITIONS
    assert {log["compared_by"] for log in sound["logs"]} == {"record"}
    counted = {recount["table"]: recount for recount in sound["recounts"]}
    assert sum(value["records_read"] for value in counted.values()) >= EVENTS
    assert all(value["rows_by_log"] == value["rows_found"] > 0 for value in counted.values())

    name = f"{DATABASE}.entry"
    assert run_command(capsys, "truncate", tmp_path / "warehouse", name, "--yes").code == 0
    assert verify()[0] == 0  # the offsets are as they were
    code, emptied = verify(name, "--recount")
    assert (code, codes(emptied)) == (1, {("missing-rows", name)})

    own_broker.kill()
    cut_log(own_broker, account, 0)
    own_broker.restart()
    delete_topic(own_broker, entry)
    own_broker.create_topic(entry, PARTITIONS)
    code, lost = verify()
    assert code == 1
    assert ("log-truncated", f"{account}/0") in codes(lost)
    assert ("topic-recreated", f"{entry}/0") in codes(lost)
    refused = run_command(capsys, *words(tmp_path), "--recount")
    assert refused.code == 2
    assert "leave out --recount" in refused.err
    # Nothing was written by any of it.
    catalog = FilesystemCatalog(str(tmp_path / "warehouse"), LocalFileIO())
    assert catalog.list_databases() == [DATABASE]

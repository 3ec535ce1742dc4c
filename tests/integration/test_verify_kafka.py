"""`ingestd verify --against-kafka` after a daemon's work, with a real broker."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import LocalFileIO
from tests.support.daemon import catch_up, ingestd
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


def verify(folder: Path, config: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = ingestd(
        *("verify", folder / "warehouse", "--against-kafka", "-c", config, "--json"), *arguments
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


def codes(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(finding["code"], finding["where"]) for finding in document["findings"]}


def test_offsets_and_rows_are_compared_with_a_real_log(
    own_broker: DevBroker, tmp_path: Path
) -> None:
    ledger = Ledger(f"v{uuid.uuid4().hex[:8]}", EVENTS, accounts=300)
    ledger.produce(own_broker)
    # It ends with something that is no record: the last one is some offsets before the end.
    account, entry = f"{ledger.prefix}.bank.account", f"{ledger.prefix}.bank.entry"
    produce_transaction(own_broker, account, [(b"k", b"{")] * 2, commit=False)
    document = pipeline(tmp_path, own_broker.bootstrap, ledger.pattern, batch_rows=EVENTS // 2)
    catch_up(document, tmp_path)
    config = tmp_path / "ingestd.yaml"
    config.write_text(yaml.safe_dump(document))

    code, sound = verify(tmp_path, config, "--recount")
    assert (code, sound["findings"]) == (0, [])
    assert len(sound["logs"]) == 2 * PARTITIONS
    assert {log["compared_by"] for log in sound["logs"]} == {"record"}
    counted = {recount["table"]: recount for recount in sound["recounts"]}
    assert sum(value["records_read"] for value in counted.values()) >= EVENTS
    assert all(value["rows_by_log"] == value["rows_found"] > 0 for value in counted.values())

    name = f"{DATABASE}.entry"
    assert ingestd("truncate", tmp_path / "warehouse", name, "--yes").returncode == 0
    assert verify(tmp_path, config)[0] == 0  # the offsets are as they were
    code, emptied = verify(tmp_path, config, name, "--recount")
    assert (code, codes(emptied)) == (1, {("missing-rows", name)})

    own_broker.kill()
    cut_log(own_broker, account, 0)
    own_broker.restart()
    delete_topic(own_broker, entry)
    own_broker.create_topic(entry, PARTITIONS)
    code, lost = verify(tmp_path, config)
    assert code == 1
    assert ("log-truncated", f"{account}/0") in codes(lost)
    assert ("topic-recreated", f"{entry}/0") in codes(lost)
    refused = ingestd(
        *("verify", tmp_path / "warehouse", "--against-kafka", "-c", config, "--recount")
    )
    assert refused.returncode == 2
    assert "leave out --recount" in refused.stderr
    # Nothing was written by any of it.
    catalog = FilesystemCatalog(str(tmp_path / "warehouse"), LocalFileIO())
    assert catalog.list_databases() == [DATABASE]

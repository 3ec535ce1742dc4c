"""A warehouse in a real S3 server: conditional puts, races, and a pipeline that is killed."""

import multiprocessing
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.io.probes import prove_exclusive
from tests.support.daemon import catch_up, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.s3_server import S3Server, built, can_be_had, running_s3
from tests.support.store_checks import check_directories, check_large_file

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(2700),
    pytest.mark.skipif(not can_be_had(), reason="the S3 server is built with go"),
]
EVENTS = 12_000
NAMES = 40
WRITERS = 4


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(built(), tmp_path_factory.mktemp("s3")) as server:
        yield server


def opened(s3: S3Server) -> tuple[FileIO, str]:
    return file_io_for("s3://lake", s3.options), f"s3://lake/{uuid.uuid4().hex}"


def test_large_files_are_read_in_ranges_and_never_replaced(s3: S3Server) -> None:
    check_large_file(*opened(s3))


def test_directories_are_seen_listed_and_deleted(s3: S3Server) -> None:
    check_directories(*opened(s3))


def test_a_store_that_refuses_says_why(s3: S3Server) -> None:
    wrong = {**s3.options, "s3.secret-key": "wrong"}
    with pytest.raises(StorageError, match="403"):
        file_io_for("s3://lake", wrong).list_names("s3://lake/x")
    with pytest.raises(StorageError, match="s3://no-such-bucket/w"):
        prove_exclusive(file_io_for("s3://no-such-bucket", s3.options), "s3://no-such-bucket/w")
    assert "wrong" not in repr(file_io_for("s3://lake", wrong))


def publish_all(options: dict[str, str], root: str, mine: bytes, won: Any) -> None:
    io = file_io_for("s3://lake", options)
    for number in range(NAMES):
        if io.try_write_atomic(f"{root}/snapshot-{number}", mine):
            won.put((number, mine))


def test_of_racing_writers_exactly_one_wins_each_name(s3: S3Server) -> None:
    io, root = opened(s3)
    context = multiprocessing.get_context("spawn")
    won = context.Queue()
    writers = [
        context.Process(target=publish_all, args=(s3.options, root, b"%d" % number, won))
        for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    winners = [won.get(timeout=120) for _ in range(NAMES)]
    for writer in writers:
        writer.join(120)
    assert won.empty()
    assert sorted(number for number, _ in winners) == list(range(NAMES))
    for number, mine in winners:
        assert io.read_bytes(f"{root}/snapshot-{number}") == mine


def test_a_killed_pipeline_leaves_every_event_once_in_the_bucket(
    s3: S3Server, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """The server keeps objects as files, so that Java judges the bucket's own bytes."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker)
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=1_000)
    lake = {"path": "s3://lake/warehouse", "database": DATABASE, "options": s3.options}
    config["warehouse"] = lake
    first = s3.folder / "warehouse" / f"{DATABASE}.db" / "account" / "snapshot" / "snapshot-2"
    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until(first.exists)
        daemon.kill()
    catch_up(config, tmp_path)
    assert judge(ledger, s3.folder / "warehouse", oracle) == []

"""A real HDFS: creation, folders, races of processes, a namenode that goes, and Java beside us.

With INGESTD_LONG=1 each of four processes commits 400 times.
"""

import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.dev.jars import JarError
from ingestd.errors import StorageError
from ingestd.paimon.io import hdfs_client
from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.table.read.table_read import read_table
from tests.integration.hdfs_server import HdfsServer, running_hdfs
from tests.support.daemon import catch_up
from tests.support.ledger import Ledger
from tests.support.native_tables import native_table, put
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.racing import Runner, Track, wrong_race
from tests.support.store_checks import check_directories, check_large_file, check_names

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(3600)]
COMMITS = 400 if "INGESTD_LONG" in os.environ else 10
RACERS = 4
EVENTS = 2_000
COLUMNS = [("id", "INT"), ("v", "STRING")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    try:
        with running_hdfs(tmp_path_factory.mktemp("hdfs")) as one:
            yield one
    except JarError as error:
        pytest.skip(f"Hadoop's servers cannot be had here: {error}")


def opened(server: HdfsServer) -> tuple[FileIO, str]:
    return file_io_for(server.root), f"{server.root}/{uuid.uuid4().hex}"


def test_the_cluster_proves_that_it_creates_a_name_once(server: HdfsServer) -> None:
    io, root = opened(server)
    check_names(io, root)
    io.overwrite(f"{root}/LATEST", b"")
    assert io.read_bytes(f"{root}/LATEST") == b""
    assert io.list_names(root) == ["LATEST", "snapshot-1"], "no temporary file is left"
    assert io.list_names(f"{root}/snapshot-1") == []


def test_directories_are_seen_listed_renamed_and_deleted(server: HdfsServer) -> None:
    io, root = opened(server)
    check_directories(io, root)
    io.write_new(f"{root}/a/f", b"1")
    io.make_directory(f"{root}/b")
    with pytest.raises(StorageError, match="already exists"):
        io.rename_directory(f"{root}/a", f"{root}/b")
    assert not io.delete_empty_directory(f"{root}/a")
    assert not io.delete_empty_directory(f"{root}/a/f")
    assert io.delete_empty_directory(f"{root}/b")
    assert io.list_names(root) == ["a"]


def test_a_large_file_of_several_blocks_is_read_in_ranges_and_never_replaced(
    server: HdfsServer,
) -> None:
    check_large_file(*opened(server))


def test_of_racing_processes_each_commits_each_change_once(server: HdfsServer) -> None:
    _, root = opened(server)
    track = Track(f"{root}/db.db/t")
    table = track.lay()
    runners = [Runner(track, f"user{n}", COMMITS).start() for n in range(RACERS)]
    for process in runners:
        process.join()
        assert process.exitcode == 0
    assert wrong_race(table, users=RACERS, commits=COMMITS) == []


def test_java_and_we_write_one_table_by_turns_and_read_the_same(
    server: HdfsServer, oracle: Oracle, tmp_path: Path
) -> None:
    io, root = opened(server)
    options = {"bucket": "1"}
    table = native_table(root, COLUMNS, keys=["id"], options=options, io=io)
    put(table, [{"id": 1, "v": "ours"}, {"id": 2, "v": "ours"}])
    theirs = [{"id": number, "v": "Java's"} for number in (2, 3)]
    oracle.append(root, "db", "t", theirs, tmp_path)
    put(table, [{"id": 3, "v": "ours again"}])
    wanted = [(1, "ours"), (2, "Java's"), (3, "ours again")]
    assert sorted((row["id"], row["v"]) for row in read_table(table).to_pylist()) == wanted
    assert sorted((row["id"], row["v"]) for row in oracle.read(root, "db", "t")) == wanted
    assert oracle.fsck(root, "db", "t") == []


def test_a_pipeline_writes_every_event_once(
    server: HdfsServer, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker)
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=1_000)
    warehouse = f"{server.root}/{uuid.uuid4().hex}"
    config["warehouse"] = {"path": warehouse, "database": DATABASE}
    catch_up(config, tmp_path)
    accounts = oracle.read(warehouse, DATABASE, "account")
    assert {row["account"]: row["number"] for row in accounts} == ledger.final_accounts()
    entries = [row["number"] for row in oracle.read(warehouse, DATABASE, "entry")]
    assert sorted(entries) == sorted(ledger.entries())
    assert oracle.fsck(warehouse, DATABASE, "entry") == []


def test_nobody_may_write_where_permission_or_quota_end(
    server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    io, root = opened(server)
    io.make_directory(f"{root}/small")
    server.command("quota", root.removeprefix(server.root) + "/small", 3)
    with pytest.raises(StorageError, match="the quota of names is exceeded"):
        for number in range(5):
            io.write_new(f"{root}/small/{number}", b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    hdfs_client.forget_client(server.root)
    with pytest.raises(StorageError, match=r"cannot publish .*/f: permission denied: .*nobody"):
        io.try_write_atomic(f"{root}/f", b"1")
    monkeypatch.undo()
    hdfs_client.forget_client(server.root)
    assert io.try_write_atomic(f"{root}/f", b"1")


def test_safe_mode_is_waited_out_and_named_when_it_lasts(
    server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    io, root = opened(server)
    io.write_new(f"{root}/before", b"1")
    server.command("safemode", "ENTER")
    later = threading.Timer(1, server.command, ("safemode", "LEAVE"))
    assert io.read_bytes(f"{root}/before") == b"1"
    with monkeypatch.context() as patch:
        patch.setattr(hdfs_client, "PATIENCE_SECONDS", 0.1)
        with pytest.raises(StorageError, match="the namenode is in safe mode"):
            io.try_write_atomic(f"{root}/after", b"1")
    later.start()
    assert io.try_write_atomic(f"{root}/after", b"1")
    later.join()


def test_a_namenode_that_stands_still_is_left_and_found_again(
    server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    io, root = opened(server)
    io.write_new(f"{root}/before", b"1")
    server.freeze()
    try:
        monkeypatch.setattr(hdfs_client, "RESPONSE_SECONDS", 0.5)
        with pytest.raises(StorageError, match=r"no response from the cluster within 0\.5 seconds"):
            io.read_bytes(f"{root}/before")
    finally:
        server.thaw()
        monkeypatch.undo()
    assert io.read_bytes(f"{root}/before") == b"1"


def test_a_race_goes_on_after_the_namenode_was_killed_and_started_again(
    server: HdfsServer,
) -> None:
    io, root = opened(server)
    track = Track(f"{root}/db.db/t")
    table = track.lay()
    runners = [Runner(track, f"user{n}", 6, tries_again=True).start() for n in range(2)]
    while "snapshot-2" not in io.list_names(f"{root}/db.db/t/snapshot"):
        pass
    server.kill("namenode")
    server.start_namenode()
    for process in runners:
        process.join()
        assert process.exitcode == 0
    assert wrong_race(table, users=2, commits=6) == []

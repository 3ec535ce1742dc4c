"""Commits to a real S3 server over a bad network: lost answers, refusals, latency, races.

With INGESTD_LONG=1 each of four processes commits 400 times.
"""

import os
import uuid
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from bench.one_process import OneProcess
from ingestd.errors import CommitUnknownError, StorageError
from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from tests.integration.s3_proxy import TROUBLES, FaultyProxy, ProxyFault, Trouble
from tests.support.metadata_tables import append, live_names, message, metadata_table
from tests.support.native_tables import native_table, put
from tests.support.racing import Runner, Track, wrong_race
from tests.support.s3_server import S3Server, built, can_be_had, running_s3

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not can_be_had(), reason="the S3 server is built with go"),
]
RACE = 400 if "INGESTD_LONG" in os.environ else 10
RACERS = 4
LARGE = 20 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_s3(built(), tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="module")
def line(server: S3Server) -> Iterator[FaultyProxy]:
    """The network between us and the server."""
    with FaultyProxy(server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxy(line: FaultyProxy) -> Iterator[FaultyProxy]:
    """The same, good until a test says otherwise."""
    yield line
    line.forget()


@pytest.fixture
def options(server: S3Server, line: FaultyProxy) -> dict[str, str]:
    return {**server.options, "s3.endpoint": line.endpoint}


@pytest.fixture
def io(options: dict[str, str]) -> FileIO:
    return file_io_for("s3://lake", options)


@pytest.fixture
def root() -> str:
    return f"s3://lake/{uuid.uuid4().hex}"


@pytest.mark.parametrize(
    ("trouble", "times"), [*((trouble, 1) for trouble in TROUBLES), ("slow-down", 8), ("lost", 8)]
)
def test_a_commit_lands_once_whatever_becomes_of_its_publication(
    trouble: Trouble, times: int, io: FileIO, root: str, proxy: FaultyProxy
) -> None:
    """Eight in a row are more than the library tries again by itself."""
    table = metadata_table(io, path=f"{root}/t")
    state = append(table, "me", 1, message("a")).state
    proxy.faults.append(ProxyFault(trouble, "PUT", "/snapshot-2", times=times))
    done = append(table, "me", 2, message("b"), state=state)
    assert (done.status, len(proxy.struck) >= min(times, 7)) == ("committed", True)
    assert append(table, "me", 2, message("b")).status == "replayed"
    assert append(table, "me", 3, message("c"), state=done.state).status == "committed"
    assert snapshot_ids(io, table.paths) == [1, 2, 3]
    assert live_names(table) == ["a", "b", "c"]


def test_a_rival_wins_after_a_lost_response_and_is_built_upon(
    io: FileIO, root: str, proxy: FaultyProxy
) -> None:
    table = metadata_table(io, path=f"{root}/t")
    state = append(table, "me", 1, message("a")).state
    assert append(table, "rival", 1, message("r")).status == "committed"
    proxy.faults.append(ProxyFault("lost", "PUT", "/snapshot-3"))
    proxy.faults.append(ProxyFault("cut", "GET", "/snapshot-2"))
    done = append(table, "me", 2, message("b"), state=state)
    assert (done.status, done.snapshot and done.snapshot.id) == ("committed", 3)
    assert live_names(table) == ["a", "b", "r"]


def test_a_store_that_stays_silent_leaves_the_outcome_open_and_the_files_there(
    io: FileIO, root: str, proxy: FaultyProxy
) -> None:
    table = metadata_table(io, path=f"{root}/t", options={"commit.max-retries": "1"})
    state = append(table, "me", 1, message("a")).state
    for kind in ("PUT", "GET", "HEAD"):
        proxy.faults.append(ProxyFault("conflict", kind, "/snapshot-2", times=1000))
    proxy.faults[-1].first = 2  # the check whether the file exists
    with pytest.raises(CommitUnknownError, match="whether snapshot 2 was published is not known"):
        append(table, "me", 2, message("b"), state=state)
    proxy.forget()
    assert append(table, "me", 2, message("b"), state=state).status == "committed"
    assert live_names(table) == ["a", "b"]


def test_warm_commits_list_nothing(io: FileIO, root: str, proxy: FaultyProxy) -> None:
    table = metadata_table(io, path=f"{root}/t", options={"manifest.merge-min-count": "4"})
    state = load_state(table)
    for number in range(2):
        state = append(table, "me", number + 1, message(f"f{number}"), state=state).state
    proxy.forget()
    for number in range(2, 12):
        state = append(table, "me", number + 1, message(f"f{number}"), state=state).state
    assert proxy.count("PUT") >= 10 * 4, "the requests came by here"
    assert proxy.count("LIST") == 0
    assert proxy.count("GET") + proxy.count("HEAD") <= 10 * 7


@pytest.mark.parametrize("tables", [1, 100])
def test_a_batch_makes_fourteen_requests_a_table(
    tables: int, options: dict[str, str], root: str, proxy: FaultyProxy
) -> None:
    """The figures of docs/performance.md; one of the fourteen is for all tables."""
    pipeline = OneProcess(root, {"bucket": "1"}, (), storage=options)
    pipeline.open()
    for number in range(3):
        proxy.forget()
        pipeline.batch({f"t{one}": [{"k": number}] for one in range(tables)}, ["k"])
    assert Counter(seen.kind for seen in proxy.seen) == {
        "PUT": 6 * tables + 1,
        "GET": 3 * tables,
        "HEAD": 4 * tables,
    }


def test_rows_come_back_through_a_network_that_cuts_and_refuses(
    io: FileIO, root: str, proxy: FaultyProxy
) -> None:
    columns = [("id", "INT NOT NULL"), ("v", "STRING")]
    table = native_table(root, columns, keys=["id"], options={"bucket": "2"}, io=io)
    proxy.chance = (Random(5), 0.08)
    troubled = 0
    for number in range(10):
        while True:
            try:
                put(table, [{"id": number, "v": "x" * 50_000}, {"id": 99, "v": str(number)}])
                break
            except StorageError:
                continue
        troubled = len(proxy.struck)
    proxy.chance = None
    rows = sorted((row["id"], row["v"]) for row in read_table(table).to_pylist())
    assert rows == [*((number, "x" * 50_000) for number in range(10)), (99, "9")]
    assert troubled > 5


def test_a_large_file_goes_in_parts_and_is_whole_whatever_part_of_it_is_troubled(
    io: FileIO, root: str, proxy: FaultyProxy
) -> None:
    content = os.urandom(LARGE)
    proxy.faults += [
        ProxyFault("slow-down", "POST", "uploads="),
        ProxyFault("lost", "PUT", "partNumber=2"),
        ProxyFault("lost", "POST", "uploadId="),
    ]
    with io.open_output(f"{root}/large") as stream:
        stream.write(content)
    assert [one for one, _ in proxy.struck] == ["slow-down", "lost", "lost"]
    assert sum("partNumber=" in one.path for one in proxy.seen) >= LARGE // (8 << 20)
    assert io.read_bytes(f"{root}/large") == content
    with (
        pytest.raises(StorageError, match="already exists"),
        io.open_output(f"{root}/large") as out,
    ):
        out.write(content[::-1])
    assert io.read_bytes(f"{root}/large") == content


def test_a_small_file_whose_answer_is_lost_counts_as_written(
    io: FileIO, root: str, proxy: FaultyProxy
) -> None:
    proxy.faults.append(ProxyFault("lost", "PUT", "/small"))
    with io.open_output(f"{root}/small") as stream:
        stream.write(b"rows")
    assert (len(proxy.struck), io.read_bytes(f"{root}/small")) == (1, b"rows")
    with (
        pytest.raises(StorageError, match="already exists"),
        io.open_output(f"{root}/small") as out,
    ):
        out.write(b"swor")


def test_racing_processes_commit_each_change_once_over_a_bad_network(
    options: dict[str, str], root: str, proxy: FaultyProxy
) -> None:
    track = Track(f"{root}/db.db/t", options)
    table = track.lay()
    proxy.delay, proxy.chance = 0.001, (Random(11), 0.01)
    racers = [
        Runner(track, f"user{n}", RACE, keeps_state=n % 2 == 0, tries_again=True).start()
        for n in range(RACERS)
    ]
    for process in racers:
        process.join()
    proxy.delay, proxy.chance = 0.0, None
    assert [process.exitcode for process in racers] == [0] * RACERS
    assert wrong_race(table, users=RACERS, commits=RACE) == []
    assert proxy.struck
    print(f"{len(proxy.seen)} requests, {len(proxy.struck)} troubled")

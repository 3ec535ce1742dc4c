"""Google's and Azure's stores, as real server processes: creation, folders, races of processes.

With INGESTD_LONG=1 each of four processes commits 400 times.
"""

import os
import uuid
from collections.abc import Iterator
from subprocess import SubprocessError

import pytest

from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.io.object_store import open_store
from ingestd.paimon.table.read.table_read import read_table
from tests.integration import azure_server, gcs_server
from tests.integration.azure_server import AzureServer, installed, running_azure
from tests.integration.gcs_server import GcsServer, built, running_gcs
from tests.support.native_tables import native_table, put
from tests.support.racing import Runner, Track, wrong_race
from tests.support.store_checks import check_directories, check_large_file, check_names

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(3600)]
COMMITS = 400 if "INGESTD_LONG" in os.environ else 10
RACERS = 4
Server = AzureServer | GcsServer


@pytest.fixture(scope="module", params=["azure", "gcs"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp(request.param)
    is_azure = request.param == "azure"
    if not (azure_server.can_be_had() if is_azure else gcs_server.can_be_had()):
        pytest.skip(
            "Azurite needs npm and node" if is_azure else "fake-gcs-server is built with go"
        )
    try:
        program = installed() if is_azure else built()
    except SubprocessError as error:
        pytest.skip(f"the server cannot be had here: {error}")
    running = running_azure(program, folder) if is_azure else running_gcs(program, folder)
    with running as one, pytest.MonkeyPatch.context() as patch:
        for name, value in one.environment.items():
            patch.setenv(name, value)
        open_store.cache_clear()
        yield one
    open_store.cache_clear()


def opened(server: Server) -> tuple[FileIO, str]:
    return file_io_for(server.root, server.options), f"{server.root}/{uuid.uuid4().hex}"


def test_the_store_proves_that_it_creates_a_name_once(server: Server) -> None:
    check_names(*opened(server))


def test_directories_are_seen_listed_renamed_and_deleted(server: Server) -> None:
    check_directories(*opened(server))


def test_a_large_file_goes_in_parts_and_is_never_replaced(server: Server) -> None:
    check_large_file(*opened(server))


def test_of_racing_processes_each_commits_each_change_once(server: Server) -> None:
    _, root = opened(server)
    track = Track(f"{root}/db.db/t", server.options)
    table = track.lay()
    runners = [
        Runner(track, f"user{n}", COMMITS, keeps_state=n % 2 == 0, tries_again=True).start()
        for n in range(RACERS)
    ]
    for process in runners:
        process.join()
    assert [process.exitcode for process in runners] == [0] * RACERS
    assert wrong_race(table, users=RACERS, commits=COMMITS) == []


def test_rows_come_back_as_they_were_written(server: Server) -> None:
    io, root = opened(server)
    columns = [("id", "INT"), ("v", "STRING")]
    table = native_table(root, columns, keys=["id"], options={"bucket": "2"}, io=io)
    for number in range(3):
        put(table, [{"id": number, "v": f"row {number}"}, {"id": 9, "v": str(number)}])
    found = {row["id"]: row["v"] for row in read_table(table).to_pylist()}
    assert found == {0: "row 0", 1: "row 1", 2: "row 2", 9: "2"}

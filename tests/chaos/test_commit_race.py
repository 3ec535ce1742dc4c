"""Several real processes commit to one local table at once; some are killed on the way."""

import multiprocessing
import random
import time
from collections import Counter
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state, refresh_state
from tests.support.metadata_tables import append, live_names, message, metadata_table

pytestmark = pytest.mark.chaos
_SPAWN = multiprocessing.get_context("spawn")
_PATIENT = {"commit.max-retries": "1000", "manifest.merge-min-count": "5"}


def _open(path: str) -> FileStoreTable:
    io = LocalFileIO(sync=False)
    table = metadata_table(path="/nowhere/t", options=_PATIENT)
    schema = latest_schema(io, type(table.paths)(path))
    assert schema is not None
    return FileStoreTable(path, schema, io, "db.t")


def _new_table(root: Path) -> FileStoreTable:
    path = str(root / "db.db" / "t")
    return metadata_table(LocalFileIO(sync=False), path=path, options=_PATIENT)


def _commit_in_turn(path: str, user: str, commits: int) -> None:
    """Commit identifiers after the user's newest up to `commits`, state carried along."""
    table = _open(path)
    state = load_state(table)
    for identifier in range(1, commits + 1):
        name = f"{user}-{identifier}"
        state = append(table, user, identifier, message(name), state=state).state


def _commit_with_fresh_state(path: str, user: str, commits: int) -> None:
    table = _open(path)
    for identifier in range(1, commits + 1):
        append(table, user, identifier, message(f"{user}-{identifier}"))


def _start(target: object, path: str, user: str, commits: int) -> SpawnProcess:
    process = _SPAWN.Process(target=target, args=(path, user, commits))  # type: ignore[arg-type]
    process.start()
    return process


def _check(table: FileStoreTable, users: int, commits: int) -> None:
    """Every commit is there once, one per snapshot, in the order of each user."""
    ids = snapshot_ids(table.io, table.paths)
    assert ids == list(range(1, users * commits + 1))
    snapshots = [read_snapshot(table.io, table.paths, snapshot_id) for snapshot_id in ids]
    made = Counter((s.commit_user, s.commit_identifier) for s in snapshots)
    assert made == Counter(
        (f"user{user}", identifier) for user in range(users) for identifier in range(1, commits + 1)
    )
    for user in range(users):
        mine = [s.commit_identifier for s in snapshots if s.commit_user == f"user{user}"]
        assert mine == sorted(mine)
    assert [s.total_record_count for s in snapshots] == ids
    names = [f"user{user}-{n}" for user in range(users) for n in range(1, commits + 1)]
    assert live_names(table) == sorted(names)


@pytest.mark.parametrize("target", [_commit_in_turn, _commit_with_fresh_state])
def test_every_commit_of_racing_processes_lands_exactly_once(
    tmp_path: Path, target: object
) -> None:
    table = _new_table(tmp_path)
    state = load_state(table)
    processes = [_start(target, table.path, f"user{n}", 25) for n in range(4)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    _check(table, users=4, commits=25)
    known = refresh_state(table, state)
    fresh = load_state(table)
    assert (known.snapshot, known.manifests) == (fresh.snapshot, fresh.manifests)
    names = table.io.list_names(f"{table.path}/snapshot")
    assert [name for name in names if name.startswith(".")] == []


def test_a_killed_process_that_starts_again_commits_nothing_twice(tmp_path: Path) -> None:
    table = _new_table(tmp_path)
    chance = random.Random(7)
    victims = dict.fromkeys(range(3), 0)
    processes = {
        user: _start(_commit_with_fresh_state, table.path, f"user{user}", 25) for user in victims
    }
    while any(kills < 3 for kills in victims.values()):
        user = chance.choice([user for user, kills in victims.items() if kills < 3])
        seen = len(snapshot_ids(table.io, table.paths))
        while len(snapshot_ids(table.io, table.paths)) < min(seen + 2, 75):
            if not any(process.is_alive() for process in processes.values()):
                break
            time.sleep(chance.uniform(0.001, 0.01))
        processes[user].kill()
        processes[user].join()
        victims[user] += 1
        processes[user] = _start(_commit_with_fresh_state, table.path, f"user{user}", 25)
    for process in processes.values():
        process.join()
        assert process.exitcode == 0
    _check(table, users=3, commits=25)

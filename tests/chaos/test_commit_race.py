"""Several real processes commit to one local table at once; some are killed on the way.

With INGESTD_LONG=1 each of four commits 400 times.
"""

import os
import random
import time
from pathlib import Path

import pytest

from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state, refresh_state
from tests.support.racing import Runner, Track, wrong_race

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]
COMMITS = 400 if "INGESTD_LONG" in os.environ else 25


@pytest.mark.parametrize("keeps_state", [True, False])
def test_every_commit_of_racing_processes_lands_exactly_once(
    tmp_path: Path, keeps_state: bool
) -> None:
    track = Track(str(tmp_path / "db.db" / "t"))
    table = track.lay()
    state = load_state(table)
    runners = [Runner(track, f"user{n}", COMMITS, keeps_state).start() for n in range(4)]
    for process in runners:
        process.join()
        assert process.exitcode == 0
    assert wrong_race(table, users=4, commits=COMMITS) == []
    known = refresh_state(table, state)
    fresh = load_state(table)
    assert (known.snapshot, known.manifests) == (fresh.snapshot, fresh.manifests)
    names = table.io.list_names(f"{table.path}/snapshot")
    assert [name for name in names if name.startswith(".")] == []


def test_a_killed_process_that_starts_again_commits_nothing_twice(tmp_path: Path) -> None:
    track = Track(str(tmp_path / "db.db" / "t"))
    table = track.lay()
    chance = random.Random(7)
    victims = dict.fromkeys(range(3), 0)
    processes = {user: Runner(track, f"user{user}", 25).start() for user in victims}
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
        processes[user] = Runner(track, f"user{user}", 25).start()
    for process in processes.values():
        process.join()
        assert process.exitcode == 0
    assert wrong_race(table, users=3, commits=25) == []

"""Random lives of a pipeline that writes a table and a branch of it by turns.

The tables have no key, so that a record that is read again without need is there twice.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import branch_names, tag_names
from ingestd.paimon.table.retention.branches import create_branch, drop_branch, fast_forward
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.driver_actions import die_at
from tests.support.driver_lives import World, born, live
from tests.support.fast_driver import fast_driver
from tests.support.stopping_io import StoppingIO

SEEDS = 1000 if os.environ.get("INGESTD_LONG") else 12
_ACTIONS = 14
_MAIN, _BRANCH = "orders", "orders$branch_fix"


@dataclass
class _Life:
    world: World
    target: str = _MAIN
    interrupted: bool = False
    """Whether a fast-forward is to be finished."""

    @property
    def exists(self) -> bool:
        table = self.world.home.truth.table(_MAIN)
        return "fix" in branch_names(table.io, table.paths)

    def send_to(self, target: str) -> None:
        self.target = target
        self.world.set(mapping=dict.fromkeys(("copy.orders", "shop.orders"), target))

    def produce(self) -> None:
        for topic, partition in (("shop.orders", 0), ("shop.orders", 1), ("shop.users", 0)):
            self.world.produce(topic, self.world.rng.randrange(6), partition)

    def run_one_batch(self) -> None:
        live(self.world, 1)

    def die(self) -> None:
        die_at(None, self.world.rng.randrange(1, 60))(self.world)

    def to_branch(self) -> None:
        """Send rows to a new branch at some snapshot of the table."""
        if self.target == _BRANCH:
            return
        table = self.world.home.truth.table(_MAIN)
        if self.exists:
            drop_branch(table, "fix")
        snapshot = self.world.rng.choice(snapshot_ids(table.io, table.paths))
        tag = f"tag-{snapshot}"
        if tag not in tag_names(table.io, table.paths):
            at = read_snapshot(table.io, table.paths, snapshot)
            create_tag(table, tag, at, now_ms=self.world.clock[0])
        create_branch(table, "fix", tag)
        self.send_to(_BRANCH)

    def forward(self) -> None:
        if self.exists:
            fast_forward(self.world.home.truth.table(_MAIN), "fix")
            self.interrupted = False

    def forward_in_part(self) -> None:
        if self.exists and self.target == _BRANCH:
            table = self.world.home.truth.table(_MAIN)
            changes = self.world.rng.randrange(20)
            self.interrupted = True
            with contextlib.suppress(StorageError):
                fast_forward(replace(table, io=StoppingIO(table.io, changes)), "fix")
                self.interrupted = False

    def to_table(self) -> None:
        if self.interrupted:
            self.forward()
        self.send_to(_MAIN)

    def roll_back(self) -> None:
        table = self.world.home.truth.table(self.target)
        snapshot = self.world.rng.choice(snapshot_ids(table.io, table.paths))
        rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, snapshot)))

    def maintain(self) -> None:
        for name in (_MAIN, _BRANCH) if self.exists else (_MAIN,):
            table = self.world.home.truth.table(name)
            later = self.world.clock[0] + 10**9
            compact_table(table, now_ms=self.world.clock[0], full=self.world.rng.random() < 0.5)
            expire_snapshots(table, expire_settings(_KEEPS_ONE), later)
            remove_orphans(table, find_orphans(table, later))

    def check(self) -> None:
        """Run to the end: the target has every order once, no table one twice or damage."""
        live(self.world)
        logs = self.world.kafka.topics["shop.orders"].logs
        expected = sorted(number for log in logs for number, _ in log.records)
        assert self.world.home.truth.ids(self.target) == expected
        for name in (_MAIN, _BRANCH) if self.exists else (_MAIN,):
            twice = [
                n for n, count in Counter(self.world.home.truth.ids(name)).items() if count > 1
            ]
            assert (name, twice) == (name, [])
            # A process that died may have left the hint of the newest snapshot behind it.
            found = [one for one in verify(self.world.home.truth.table(name)) if one.code != "hint"]
            assert (name, found) == (name, [])


_KEEPS_ONE = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 s"}
_DONE: tuple[Callable[[_Life], None], ...] = (
    _Life.produce, _Life.produce, _Life.run_one_batch, _Life.die, _Life.to_branch, _Life.forward,
    _Life.forward_in_part, _Life.to_table, _Life.roll_back, _Life.maintain, _Life.check,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_branch_and_the_table_get_every_record_once(seed: int) -> None:
    with fast_driver():
        life = _Life(born())
        life.world.rng = Random(seed)
        live(life.world)
        for _ in range(_ACTIONS):
            action = life.world.rng.choice(_DONE)
            print(action.__name__, life.target)
            action(life)
        life.check()
        life.to_table()
        life.produce()
        life.check()

"""Who leads a pipeline, by files alone."""

import contextlib
import os
from collections.abc import Callable, Mapping

import pytest

from ingestd.errors import (
    CommitConflictError,
    CommitUnknownError,
    FencedError,
    FormatError,
    StorageError,
)
from ingestd.ingest.tables.leadership import Leadership, this_process
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.io.memory import MemoryFileIO
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.interleaving import Actor, Bound, explore

FOLDER = "/lake/.ingestd/shop"


def claimed(io: MemoryFileIO, holder: str) -> Leadership:
    one = Leadership(io, FOLDER, "shop", holder)
    one.claim()
    return one


def test_the_newest_claim_leads_and_the_one_before_is_reported_by_name() -> None:
    io = MemoryFileIO()
    first = claimed(io, "a:1")
    first.check()
    second = claimed(io, "b:2")
    second.check()
    with pytest.raises(FencedError, match=r"pipeline shop: another daemon .*\(b:2\).*a:1"):
        first.check()
    assert io.list_names(FOLDER) == ["term-2"], "old terms are taken away"


def test_a_query_that_is_started_again_keeps_its_term() -> None:
    io = MemoryFileIO()
    claimed(io, "a")
    assert claimed(io, "a").term == 1


def test_a_process_that_was_replaced_does_not_turn_that_round_by_a_restart() -> None:
    io = MemoryFileIO()
    claimed(io, "a")
    claimed(io, "b")
    claimed(io, "c").check()
    with pytest.raises(FencedError, match=r"taken over \(c\)"):
        claimed(io, "a")


def test_a_leader_that_meets_its_predecessors_last_commit_goes_on() -> None:
    io = MemoryFileIO()
    old, new = claimed(io, "a"), claimed(io, "b")
    fenced = FencedError("table t: identifier 4 is there")
    assert type(old.error_to_raise(fenced)) is FencedError
    healed = new.error_to_raise(fenced)
    assert type(healed) is CommitConflictError
    assert "table t: identifier 4 is there (this process leads pipeline shop" in healed.message
    other = CommitUnknownError("?")
    assert new.error_to_raise(other) is other


def test_a_name_that_is_free_because_all_went_past_it_is_not_taken() -> None:
    """A claimant that looked when term 1 was the newest, and slept until term 3."""
    io = MemoryFileIO()
    claimed(io, "a")

    def rivals() -> None:
        claimed(io, "b")
        claimed(io, "c")

    slow = FaultyFileIO(io, [ValidationIssue("try_write_atomic", "term-2", action=rivals)])
    one = Leadership(slow, FOLDER, "shop", "d")
    one.claim()
    assert (one.term, io.list_names(FOLDER)) == (4, ["term-4"])


def test_a_claimant_that_died_in_the_place_of_an_older_term_does_not_give_it_back() -> None:
    """It looked when term 1 was the newest, slept until term 3, and died with term 2 in place."""
    io = MemoryFileIO()
    claimed(io, "a")
    leaders: list[Leadership] = []

    def rivals() -> None:
        leaders.extend([claimed(io, "b"), claimed(io, "c")])

    dies = FaultyFileIO(
        io,
        [
            ValidationIssue("try_write_atomic", "term-2", action=rivals),
            ValidationIssue("list_names", first=2),
        ],
    )
    with pytest.raises(StorageError, match="injected"):
        Leadership(dies, FOLDER, "shop", "d").claim()
    assert io.list_names(FOLDER) == ["term-2", "term-3"]
    replaced, leader = leaders
    leader.check()
    with pytest.raises(FencedError, match=r"taken over \(c\)"):
        replaced.check()


def test_a_term_that_was_deleted_by_hand_is_not_reported_as_a_daemon() -> None:
    io = MemoryFileIO()
    one = claimed(io, "a")
    io.delete_quietly(f"{FOLDER}/term-1")
    with pytest.raises(FencedError, match=r"term-1 is gone.*start it again"):
        one.check()


def test_where_nothing_can_be_deleted_the_one_before_is_reported_too() -> None:
    class Undeletable(MemoryFileIO):
        """A store whose policy forbids it."""

        def delete_quietly(self, path: str) -> None:
            """Nothing goes."""

    io = Undeletable()
    leaders = [claimed(io, name) for name in "abc"]
    leaders[-1].check()
    for replaced in leaders[:-1]:
        with pytest.raises(FencedError, match=r"taken over \(c\)"):
            replaced.check()
    assert claimed(io, "c").term == 3


class _Claims:
    """Two processes that claim at once, in a world of their own."""

    def __init__(self) -> None:
        self.io = MemoryFileIO()
        self.leaders: dict[str, Leadership] = {}

    def actor(self, name: str) -> Actor:
        def claim(io: FileIO) -> None:
            self.leaders[name] = Leadership(io, FOLDER, "shop", name)
            with contextlib.suppress(FencedError):  # the other one was later, and is done
                self.leaders[name].claim()

        return claim

    def check(self) -> None:
        (left,) = self.io.list_names(FOLDER)
        ours = [leader for leader in self.leaders.values() if left == f"term-{leader.term}"]
        assert len(ours) == 1, (left, [leader.term for leader in self.leaders.values()])


def test_in_every_order_of_two_claims_and_one_death_exactly_one_leads() -> None:
    def world() -> tuple[FileIO, Mapping[str, Actor], Callable[[], None]]:
        claims = _Claims()
        return claims.io, {name: claims.actor(name) for name in "ab"}, claims.check

    everything = Bound(preemptions=3, issues=1)
    assert explore(world, everything, lambda operation, path: True) > 500


def test_a_damaged_term_is_named() -> None:
    io = MemoryFileIO()
    io.overwrite(f"{FOLDER}/term-7", b"{}")
    with pytest.raises(FormatError, match=f"{FOLDER}/term-7"):
        claimed(io, "a")


def test_processes_have_names_of_their_own_that_do_not_change() -> None:
    assert this_process() == this_process()
    assert f":{os.getpid()}:" in this_process()

"""The commit protocol under every order of turns, to a bound, with crashes and lying storage.

Writers, compactors and expiry are the real code over files in memory; only the order of their
calls, and what becomes of them, is chosen. With INGESTD_LONG=1 the bound is one preemption more.
"""

import os
from collections.abc import Callable, Mapping

import pytest

from ingestd.paimon.io.file_io import FileIO
from tests.property.commit_actors import World, noticed, noticed_with_expiry
from tests.support.interleaving import Actor, Bound, explore

DEEPER = int("INGESTD_LONG" in os.environ)
Cast = Callable[[World], Mapping[str, Actor]]

CASTS: Mapping[str, tuple[Cast, Bound]] = {
    "two writers": (
        lambda world: {"a": world.writer("a", 1 + DEEPER), "b": world.writer("b", 1)},
        Bound(1 + DEEPER, DEEPER),
    ),
    "two writers that die": (
        lambda world: {"a": world.writer("a", 1), "b": world.writer("b", 1)},
        Bound(DEEPER, 1),
    ),
    "two lives of one writer": (
        lambda world: {"a": world.writer("a", 1 + DEEPER), "zombie": world.writer("a", 1)},
        Bound(2),
    ),
    "a writer and a compactor": (
        lambda world: {"a": world.writer("a", 1), "compactor": world.compactor()},
        Bound(1 + DEEPER, DEEPER),
    ),
    "a compactor that dies": (
        lambda world: {"a": world.writer("a", 1), "compactor": world.compactor()},
        Bound(DEEPER, 1),
    ),
    "two compactors": (
        lambda world: {"one": world.compactor(), "two": world.compactor()},
        Bound(1 + DEEPER),
    ),
    "writers whose storage fails or answers nothing": (
        lambda world: {"a": world.writer("a", 1), "b": world.writer("b", 1)},
        Bound(DEEPER, 1 + DEEPER, ("fail", "lose")),
    ),
    "a writer, a compactor and expiry": (
        lambda world: {
            "a": world.writer("a", 1),
            "compactor": world.compactor(),
            "expiry": world.expirer(),
        },
        Bound(1 + DEEPER),
    ),
    "expiry that dies": (
        lambda world: {"a": world.writer("a", 1), "expiry": world.expirer()},
        Bound(DEEPER, 1),
    ),
}


@pytest.mark.parametrize("name", CASTS)
def test_in_no_order_of_turns_anything_is_lost_or_doubled(name: str) -> None:
    cast, bound = CASTS[name]
    start = World.new().filled("before", 2)

    def world() -> tuple[FileIO, Mapping[str, Actor], Callable[[], None]]:
        made = start.copy()
        return made.io, cast(made), made.check

    seen = noticed_with_expiry if "expiry" in name else noticed
    runs = explore(world, bound, seen)
    assert runs > 10

"""Every order in which some actors may take turns, to a bound; a fault at any turn.

An actor is a function that works on a FileIO. It runs in a thread of its own that stops before
each call that others could notice, until the scheduler lets it go on: one thread moves at a time,
so a run depends on nothing but the scheduler's choices. All runs with at most this many preemptions
(a turn taken from an actor that could have gone on) and `faults` errors are injected, each once.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO
from tests.support.watched_file_io import WatchedFileIO

_STOPS = frozenset(
    {"read_bytes", "write_new", "try_write_atomic", "overwrite", "delete_quietly"}
    | {"list_names", "list_entries", "exists", "size"}
)
"""Calls before which an actor may stop; all others only follow from these."""
What = Literal["go", "crash", "fail", "lose"]
Actor = Callable[[FileIO], None]
Seen = Callable[[str, str], bool]
World = Callable[[], tuple[FileIO, Mapping[str, Actor], Callable[[], None]]]


class Crash(BaseException):
    """The process of an actor has ended; nothing that it still tries has an effect."""


class Choice(NamedTuple):
    """Who takes the next turn, and what becomes of the call.

    `crash`: its process ends instead; `fail`: the call fails; `lose`: it succeeds and the answer
    is an error.
    """

    actor: str
    what: What = "go"


@dataclass(frozen=True)
class Bound:
    """How far to go, and which faults there may be."""

    preemptions: int
    issues: int = 0
    kinds: tuple[What, ...] = ("crash",)


class _Lane:
    """One life of an actor; the scheduler and its thread hand a baton to and fro."""

    def __init__(self, name: str, actor: Actor, io: FileIO, seen: Seen) -> None:
        self.name = name
        self.waits_for: tuple[str, str] | None = None
        self.error: BaseException | None = None
        self.done = False
        self._verdict: What = "go"
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        steps = SteppedFileIO(io, self, seen)
        self._thread = threading.Thread(target=self._live, args=(actor, steps), daemon=True)
        self._thread.start()
        self._stopped.acquire()

    def turn(self, verdict: What) -> None:
        """Let it go on until its next call, or its end."""
        self._verdict = verdict
        self._go.release()
        self._stopped.acquire()

    def pause(self, operation: str, path: str) -> What:
        """Called by the thread before a call; returns what is to become of it."""
        self._die_if_told()
        self.waits_for = operation, path
        self._stopped.release()
        self._go.acquire()
        self.waits_for = None
        self._die_if_told()
        return self._verdict

    def _die_if_told(self) -> None:
        if self._verdict == "crash":
            raise Crash

    def _live(self, actor: Actor, io: FileIO) -> None:
        try:
            actor(io)
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001  (the scheduler raises it)
            self.error = error
        self.done = True
        self._stopped.release()


@dataclass
class Run:
    """One order of turns: what could be chosen at each, and what was."""

    choices: list[Choice] = field(default_factory=list)
    options: list[list[Choice]] = field(default_factory=list)


def explore(
    world: World,
    bound: Bound,
    seen: Seen,
) -> int:
    """Make every run within the bound in a world of its own; how many there were.

    `world` gives the files, the actors and a check that is made when all have ended. An actor
    whose process crashed begins again. `seen` says which calls others could notice. What an actor
    or the check raises is raised here, with the choices that led to it.
    """
    waiting: list[list[Choice]] = [[]]
    runs = 0
    while waiting:
        prefix = waiting.pop()
        io, actors, check = world()
        run = _run(io, actors, prefix, bound, seen)
        runs += 1
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter {_text(run.choices)}") from error
        for at in range(len(prefix), len(run.choices)):
            others = (one for one in run.options[at] if one != run.choices[at])
            waiting += [[*run.choices[:at], other] for other in others]
    return runs


def _run(
    io: FileIO,
    actors: Mapping[str, Actor],
    prefix: Sequence[Choice],
    bound: Bound,
    seen: Seen,
) -> Run:
    run = Run()
    lanes = {name: _Lane(name, actor, io, seen) for name, actor in actors.items()}
    preemptions = issues = 0
    last: str | None = None
    while live := [lane for lane in lanes.values() if not lane.done]:
        may_go_on = any(lane.name == last for lane in live)
        ordered = sorted(live, key=lambda lane: lane.name != last)
        able = ordered if preemptions < bound.preemptions or not may_go_on else ordered[:1]
        options = [Choice(lane.name) for lane in able]
        if issues < bound.issues:
            options += [Choice(lane.name, what) for lane in able for what in _faults(lane, bound)]
        at = len(run.choices)
        chosen = prefix[at] if at < len(prefix) else options[0]
        run.choices.append(chosen)
        run.options.append(options)
        preemptions += may_go_on and chosen.actor != last
        issues += chosen.what != "go"
        lane = lanes[chosen.actor]
        lane.turn(chosen.what)
        if lane.error is not None:
            raise AssertionError(f"{lane.name}: {_text(run.choices)}") from lane.error
        if chosen.what == "crash":
            lanes[lane.name] = _Lane(lane.name, actors[lane.name], io, seen)
        last = chosen.actor
    return run


def _faults(lane: _Lane, bound: Bound) -> Iterator[What]:
    writes = lane.waits_for is not None and lane.waits_for[0] == "try_write_atomic"
    return (what for what in bound.kinds if what != "lose" or writes)


def _text(choices: Sequence[Choice]) -> str:
    return " ".join(
        choice.actor if choice.what == "go" else f"{choice.actor}!{choice.what}"
        for choice in choices
    )


@dataclass(frozen=True)
class SteppedFileIO(WatchedFileIO):
    """The files as one actor sees them."""

    inner: FileIO
    lane: _Lane
    seen: Seen

    def delete_quietly(self, path: str) -> None:
        with contextlib.suppress(StorageError):
            super().delete_quietly(path)

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        stops = operation in _STOPS and self.seen(operation, path)
        verdict = self.lane.pause(operation, path) if stops else "go"
        if verdict == "fail":
            raise StorageError(f"{operation} {path} failed")
        yield
        if verdict == "lose":
            raise StorageError(f"{operation} {path} was done without an answer")

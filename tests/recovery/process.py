"""How a daemon is driven: started, run to the end of the logs, killed, started again."""

from typing import Protocol, Self

from tests.recovery.broker import Key
from tests.recovery.tables import Warehouse
from tests.recovery.world import DiedError, ReopenError, StoppedError, World

_MOST_BATCHES = 60
_MOST_STARTS_IN_A_PROCESS = 6


class Process(Protocol):
    """A daemon of one pipeline, in one process."""

    def __init__(self, world: World, role: str) -> None: ...

    def open(self) -> None:
        """Start, or start again in the process; StoppedError, DiedError."""

    def batch(self) -> bool:
        """Run a batch, return whether there was anything; StoppedError, DiedError, ReopenError."""

    def idle(self) -> None:
        """What a daemon does when tables have brought nothing for long."""

    def copy(self, world: World) -> Self:
        """The same process in a copy of its world."""

    @staticmethod
    def damaged(file: object) -> object:
        """A file of this daemon with a flipped bit."""

    @staticmethod
    def remembered(warehouse: Warehouse, pipelines: frozenset[str]) -> tuple[set[Key], set[str]]:
        """Partitions and sources that anything that is kept still knows."""


class Driver:
    """Drives processes of one kind of daemon."""

    def __init__(self, kind: type[Process]) -> None:
        self.kind = kind

    def start(self, world: World, role: str) -> Process:
        """A new process with its tables open; StoppedError, DiedError."""
        world.processes.pop(role, None)
        world.started.add(role)
        world.warehouse(role)
        process = self.kind(world, role)
        process.open()
        world.processes[role] = process
        return process

    def batches(self, world: World, role: str, most: int = _MOST_BATCHES) -> None:
        """Run batches of the process that runs, or of a new one, until nothing is left.

        StoppedError, DiedError; both end the process.
        """
        starts = 0
        try:
            process = world.processes.get(role) or self.start(world, role)
            for _ in range(most):
                try:
                    if not process.batch():
                        return
                except ReopenError:
                    starts += 1
                    if starts > _MOST_STARTS_IN_A_PROCESS:
                        raise AssertionError(f"{role} starts again and again") from None
                    process.open()
        except (StoppedError, DiedError):
            world.processes.pop(role, None)
            raise
        if most == _MOST_BATCHES:
            raise AssertionError(f"{role} never comes to an end")

    def idle(self, world: World, role: str) -> None:
        """Let the process that runs do what it does when tables bring nothing for long."""
        process = world.processes.get(role)
        if process is None:
            return
        try:
            try:
                process.idle()
            except ReopenError:
                process.open()
        except (StoppedError, DiedError):
            world.processes.pop(role, None)
            raise

    def run(self, world: World, role: str) -> StoppedError | None:
        """Run a new process to the ends of the logs, and end it; what stopped it, if anything."""
        world.processes.pop(role, None)
        try:
            self.batches(world, role)
        except StoppedError as stopped:
            return stopped
        finally:
            world.processes.pop(role, None)
        return None

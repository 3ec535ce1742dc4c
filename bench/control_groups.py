"""Control groups that limit the CPU of process trees and count it (Linux, cgroup v1, as root)."""

import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.process import BenchError

_ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "cpuacct")
_PERIOD_US = 25_000
"""Short, so that a process that has used its quota delays others by milliseconds only."""


class ControlGroup:
    """One group with a share of a core; leaving the block removes it after its processes ended.

    Children of a process in the group are in the group. Raises BenchError where groups cannot be
    created.
    """

    def __init__(self, name: str, share: float) -> None:
        self._share = share
        unique = f"bench-{name}-{uuid.uuid4().hex[:8]}"
        self._folders = [_ROOT / controller / unique for controller in _CONTROLLERS]

    def __enter__(self) -> Self:
        try:
            for folder in self._folders:
                folder.mkdir()
            limit = self._folders[0]
            (limit / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (limit / "cpu.cfs_quota_us").write_text(str(round(_PERIOD_US * self._share)))
        except OSError as error:
            self._remove()
            raise BenchError(
                f"control groups of version 1 below {_ROOT} are needed, as root: {error}"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def add(self, pids: Iterable[int]) -> None:
        """Move processes, with all their threads, into the group."""
        for pid in pids:
            for folder in self._folders:
                with suppress(ProcessLookupError):
                    (folder / "cgroup.procs").write_text(str(pid))

    def cpu_seconds(self) -> float:
        """Return the CPU that processes have used in the group, ended ones included."""
        return int((self._folders[1] / "cpuacct.usage").read_text()) / 1e9

    def _remove(self) -> None:
        for folder in self._folders:
            with suppress(OSError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    (folder.parent / "cgroup.procs").write_text(pid)
            with suppress(OSError):
                folder.rmdir()

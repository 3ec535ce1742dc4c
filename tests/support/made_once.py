"""Things in the user's cache that several test processes may want to make at the same time."""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Only one process at a time is in here for one folder, which may not exist yet."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def built_by_go(program: Path, package: str, seconds: float) -> Path:
    """A program of a Go package (`path@version`), from the cache or built into it.

    SubprocessError when it cannot be built in this many seconds.
    """
    with alone(program.parent):
        if not program.exists():
            home = program.with_name(f"build-{os.getpid()}")
            environment = {**os.environ, "GOBIN": str(home)}
            command = ["go", "install", package]
            subprocess.run(
                command, env=environment, check=True, capture_output=True, timeout=seconds
            )
            (home / program.name).replace(program)
            home.rmdir()
    return program

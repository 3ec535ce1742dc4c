"""Things in the user's cache that several test processes may want to make at the same time."""

import fcntl
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

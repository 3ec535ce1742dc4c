"""The named steps of a batch, a commit and maintenance; a test can end a process at any of them.

Every step that leaves something behind passes `reach` when it is done, which does nothing unless
someone watches. What is on storage is the same at all moments between two neighbouring steps, so
whoever survives a kill at each of them survives a kill at any time. With the variable
`INGESTD_CRASH_AT=<name>:<n>:<file>` in its environment a process kills itself when it reaches the
step for the n-th time and the file is not there yet, which it then is: once in a whole run,
however many processes have the variable.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

VARIABLE = "INGESTD_CRASH_AT"


class Point(StrEnum):
    """Each step, in about the order in which a batch passes them; maintenance comes last."""

    BATCH_PLANNED = "batch.planned"
    SLOT_RECEIVED = "slot.received"
    FILE_NAMED = "file.named"
    DATA_WRITTEN = "data.written"
    CHANGELOG_WRITTEN = "changelog.written"
    INDEX_WRITTEN = "index.written"
    SLOT_WRITTEN = "slot.written"
    BATCH_COLLECTED = "batch.collected"
    SCHEMA_CHOSEN = "schema.chosen"
    SCHEMA_PUBLISHED = "schema.published"
    CONFLICTS_CHECKED = "conflicts.checked"
    MANIFEST_WRITTEN = "manifest.written"
    DELTA_WRITTEN = "delta.written"
    CHANGELOG_LISTED = "changelog.listed"
    BASE_WRITTEN = "base.written"
    INDEX_MANIFEST_WRITTEN = "index-manifest.written"
    SNAPSHOT_READY = "snapshot.ready"
    PUBLISH_PREPARED = "publish.prepared"
    PUBLISH_LINKED = "publish.linked"
    SNAPSHOT_PUBLISHED = "snapshot.published"
    HINT_WRITTEN = "hint.written"
    DEAD_LETTERS_COMMITTED = "letters.committed"
    TABLES_COMMITTED = "tables.committed"
    CLAIMS_WRITTEN = "claims.written"
    BATCH_DONE = "batch.done"
    VECTORS_WRITTEN = "vectors.written"
    MOVES_WRITTEN = "moves.written"
    COMPACTION_PLANNED = "compaction.planned"
    COMPACTION_WRITTEN = "compaction.written"
    COMPACTION_LANDED = "compaction.landed"
    EXPIRY_PLANNED = "expiry.planned"
    EXPIRED_SNAPSHOTS = "expiry.snapshots-gone"
    EXPIRY_HINTED = "expiry.hinted"
    EXPIRED_FILES = "expiry.files-gone"


Watcher = Callable[[Point], None]


def reach(point: Point) -> None:
    """A step is done: nothing happens, unless someone watches."""
    if _watchers:
        _watchers[-1](point)


def watch(watcher: Watcher | None) -> None:
    """Have every step of this process told to a watcher, in place of any other; None: to no one."""
    _watchers.clear()
    if watcher is not None:
        _watchers.append(watcher)


def killer(name: str, times: int, mark: Path) -> Watcher:
    """Return a watcher that ends the process without a word at a step, unless the mark is there."""
    wanted, seen = Point(name), Counter[Point]()

    def watcher(point: Point) -> None:
        seen[point] += 1
        if point is wanted and seen[point] >= times and _is_mine(mark):
            os.kill(os.getpid(), signal.SIGKILL)

    return watcher


def from_environment(environ: Mapping[str, str]) -> Watcher | None:
    """Return the watcher that the environment asks for. Raises ValueError if it names no step."""
    text = environ.get(VARIABLE)
    if text is None:
        return None
    name, times, mark = text.split(":", 2)
    return killer(name, int(times), Path(mark))


def _is_mine(mark: Path) -> bool:
    """Return whether this process, of all that look, is the one that makes the mark."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


_watchers: list[Watcher] = []
watch(from_environment(os.environ))

"""A store that fails, delays, loses answers, tears writes and lists what was: nothing is lost.

A whole life of a table, compaction and expiry with it, is lived on it; an error ends the process,
which is started again, as the daemon does it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.errors import IngestdError, RetryableError
from ingestd.paimon.io.file_io import MemoryFileIO
from tests.support.crash_kinds import KINDS
from tests.support.crash_runs import wrong
from tests.support.crash_scene import Scene
from tests.support.lying_io import LIES, Lie, LyingFileIO, plan_of

_MANY = 1500 if "INGESTD_LONG" in os.environ else 20
lies = st.lists(st.tuples(st.integers(0, 150), st.sampled_from(LIES)), min_size=1, max_size=10)


@contextmanager
def scene_on(kind: str, io: LyingFileIO) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory() as root:
        yield Scene(Path(root), kind, io)


def lived(scene: Scene, io: LyingFileIO, most: int) -> list[IngestdError]:
    """The errors of the starts that it took to live to the end."""
    errors: list[IngestdError] = []
    while len(errors) <= most:
        try:
            scene.live()
        except RetryableError as error:
            assert any(path in error.message for path in io.broken), error.message
            errors.append(error)
        else:
            return errors
    raise AssertionError(f"{len(errors)} starts were not enough") from errors[-1]


def _wrong_but_hints(scene: Scene) -> list[str]:
    """A hint that could not be written stays behind until the next commit; readers look further."""
    return [one for one in wrong(scene) if "code='hint', where='LATEST'" not in one]


@settings(max_examples=_MANY)
@given(st.sampled_from(sorted(KINDS)), lies)
def test_nothing_is_lost_or_doubled_whatever_the_storage_says(
    kind: str, gaps: list[tuple[int, Lie]]
) -> None:
    io = LyingFileIO(MemoryFileIO(), plan_of(gaps))
    with scene_on(kind, io) as scene:
        lived(scene, io, most=len(gaps))
        io.lies = {}
        assert _wrong_but_hints(scene) == []


@pytest.mark.parametrize("words", ["No space left on device", "Read-only file system"])
@pytest.mark.parametrize("kind", ["append", "looked-up"])
def test_a_store_that_takes_nothing_more_is_named_and_work_goes_on_once_it_does(
    kind: str, words: str
) -> None:
    io = LyingFileIO(MemoryFileIO())
    with scene_on(kind, io) as scene:
        scene.live()
    calls, told = io.calls, 0
    for full in range(1, calls, calls // 10):
        io = LyingFileIO(MemoryFileIO(), full=full, rejection_reason=words)
        with scene_on(kind, io) as scene:
            for _ in range(2):
                try:
                    scene.live()  # what is only to be deleted stays, and no one is stopped by it
                except RetryableError as error:
                    assert words in error.message
                    told += 1
            io.full = None
            scene.live()
            assert _wrong_but_hints(scene) == []
    assert told > 10

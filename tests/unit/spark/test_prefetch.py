"""Which stage 1 of those that ran early a batch takes, and what becomes of the others."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from ingestd.ingest.settings.context import BatchContext, RoutingConfig
from ingestd.ingest.stages.decode_view import decode_view
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.spark import prefetch as module
from ingestd.spark.exchange import shared_folder as folders
from ingestd.spark.exchange.shared_folder import shared_folder
from ingestd.spark.prefetch import Prefetch

GROUPS = [[OffsetRange("s", "t", 0, 0, 5)], [OffsetRange("s", "t", 0, 5, 10)]]
VIEW = BatchContext("p", "d", {}, RoutingConfig(), {}, "d.letters", slots=2)


class Stages:
    """What the sessions of Spark would do: notes what is begun and what is cancelled."""

    def __init__(self, parent: Path) -> None:
        self.parent = parent
        self.begun: list[tuple[BatchContext, Any]] = []
        self.submitted: list[int] = []
        self.cancelled: list[int] = []
        self.broken = False
        self.done = Event()
        self.done.set()
        self.active = [1]

    def decoded(self, _: object, view: BatchContext, groups: Any, folder: str | None) -> str:
        if self.broken:
            raise Py4JError("the JVM is gone")
        assert folder is not None
        Path(folder, "x.blobs").touch()
        self.begun.append((view, groups))
        return f"pairs {len(self.begun)}"

    def statusTracker(self) -> Any:  # noqa: N802  (Spark's name)
        return SimpleNamespace(getActiveJobsIds=lambda: self.active)

    def map_stage(self, _: object, pairs: str) -> Any:
        number, cancelled = int(pairs.split()[1]), self.cancelled
        self.submitted.append(number)

        class Running:
            def cancel(self) -> None:
                cancelled.append(number)

        return Running()

    def wait(self, _: object, stage: Any, seconds: float) -> bool:
        assert stage is not None
        return self.done.wait(seconds)

    @contextmanager
    def folder(self, _: object, groups: Any) -> Iterator[str | None]:
        with shared_folder(str(self.parent)) as folder:
            yield folder


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stages:
    stages = Stages(tmp_path)
    monkeypatch.setattr(module, "decoded", stages.decoded)
    monkeypatch.setattr(module, "submit_map_stage", stages.map_stage)
    monkeypatch.setattr(module, "wait_for_stage", stages.wait)
    monkeypatch.setattr(module, "exchange_folder", stages.folder)
    return stages


@pytest.fixture
def prefetch(stages: Stages) -> Iterator[Prefetch]:
    one = Prefetch(stages)  # type: ignore[arg-type]
    yield one
    one.close()


def taken(prefetch: Prefetch, view: BatchContext = VIEW, groups: Any = GROUPS) -> object:
    """What a batch gets that has begun already; it has a folder in any case."""
    with prefetch.exchange(view, groups) as exchange:
        assert exchange.folder is not None
        assert Path(exchange.folder).is_dir()
        assert Path(exchange.folder, "x.blobs").exists() is (exchange.prefetched is not None)
        return exchange.prefetched


def test_the_same_ranges_and_the_same_view_are_taken_once(
    prefetch: Prefetch, stages: Stages
) -> None:
    assert taken(prefetch) is None
    prefetch.follow(VIEW, GROUPS)
    same = replace(VIEW, write_buffer_size=7)  # which is the write stage's
    assert taken(prefetch, same, [list(group) for group in GROUPS]) == "pairs 1"
    assert taken(prefetch) is None
    assert stages.cancelled == []


@pytest.mark.parametrize(
    ("view", "groups"),
    [
        (replace(VIEW, slots=3), GROUPS),
        (replace(VIEW, others=frozenset({"d.more"})), GROUPS),
        (VIEW, [[*GROUPS[0], *GROUPS[1]]]),
        (VIEW, [GROUPS[0], [OffsetRange("s", "t", 0, 5, 11)]]),
    ],
)
def test_any_difference_throws_it_away(
    prefetch: Prefetch, stages: Stages, view: BatchContext, groups: Any
) -> None:
    prefetch.follow(VIEW, GROUPS)
    assert taken(prefetch, view, groups) is None
    assert stages.cancelled == [1]
    assert taken(prefetch) is None


def test_at_most_one_is_begun(prefetch: Prefetch, stages: Stages) -> None:
    prefetch.follow(VIEW, GROUPS)
    prefetch.follow(replace(VIEW, slots=3), GROUPS)
    assert taken(prefetch) == "pairs 1"
    assert stages.begun == [(decode_view(VIEW, []), GROUPS)]


def test_while_one_is_taken_the_next_one_begins(prefetch: Prefetch) -> None:
    prefetch.follow(VIEW, GROUPS)
    later = replace(VIEW, slots=3)
    with prefetch.exchange(VIEW, GROUPS) as exchange:
        prefetch.follow(later, GROUPS)
        assert exchange.prefetched == "pairs 1"  # type: ignore[comparison-overlap]
    assert taken(prefetch, later) == "pairs 2"


def test_the_next_one_waits_for_one_that_is_taken_before_it_has_ended(
    prefetch: Prefetch, stages: Stages
) -> None:
    stages.done.clear()
    prefetch.follow(VIEW, GROUPS)
    with prefetch.exchange(VIEW, GROUPS):
        prefetch.follow(replace(VIEW, slots=3), GROUPS)
        while len(stages.begun) < 2:
            time.sleep(0.001)
        assert stages.submitted == [1]
        stages.done.set()
    assert taken(prefetch, replace(VIEW, slots=3)) == "pairs 2"
    assert stages.submitted == [1, 2]


def test_the_next_one_waits_for_the_job_of_a_batch_that_took_none(
    prefetch: Prefetch, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 600.0)
    stages.active.clear()
    with prefetch.exchange(VIEW, GROUPS):
        prefetch.follow(replace(VIEW, slots=3), GROUPS)
        while not stages.begun:
            time.sleep(0.001)
        time.sleep(0.05)
        assert stages.submitted == []
        stages.active.append(7)
    assert taken(prefetch, replace(VIEW, slots=3)) == "pairs 1"
    assert stages.submitted == [1]


def test_a_batch_that_begins_its_own_waits_for_no_job(prefetch: Prefetch, stages: Stages) -> None:
    prefetch.follow(VIEW, GROUPS)
    assert taken(prefetch) == "pairs 1"
    stages.done.clear()  # whatever has been taken before is of no concern any more
    prefetch.follow(VIEW, GROUPS)
    assert taken(prefetch) == "pairs 2"


def test_nobody_waits_for_one_that_is_thrown_away(prefetch: Prefetch, stages: Stages) -> None:
    stages.done.clear()
    prefetch.follow(VIEW, GROUPS)
    with prefetch.exchange(VIEW, GROUPS):
        prefetch.follow(replace(VIEW, slots=3), GROUPS)
        prefetch.forget()
    assert stages.cancelled == [2]


def test_what_cannot_be_begun_is_forgotten(prefetch: Prefetch, stages: Stages) -> None:
    stages.broken = True
    prefetch.follow(VIEW, GROUPS)
    assert taken(prefetch) is None


def test_what_is_thrown_away_leaves_no_files(prefetch: Prefetch, stages: Stages) -> None:
    prefetch.follow(VIEW, GROUPS)
    prefetch.close()
    assert stages.cancelled == [1]
    wait_for_removal()
    assert list(stages.parent.iterdir()) == []


def test_what_cannot_be_cancelled_leaves_no_files_and_says_so(
    prefetch: Prefetch, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: object, pairs: str) -> Any:
        raise ConnectionRefusedError(pairs)

    monkeypatch.setattr(module, "submit_map_stage", gone)
    prefetch.follow(VIEW, GROUPS)
    with pytest.raises(ConnectionRefusedError):
        prefetch.forget()
    prefetch.forget()
    wait_for_removal()
    assert list(stages.parent.iterdir()) == []


def test_a_batch_that_fails_leaves_no_files_of_what_it_took(
    prefetch: Prefetch, stages: Stages
) -> None:
    prefetch.follow(VIEW, GROUPS)
    with pytest.raises(KeyError), prefetch.exchange(VIEW, GROUPS):
        raise KeyError
    wait_for_removal()
    assert list(stages.parent.iterdir()) == []


def wait_for_removal() -> None:
    """Until folders that are to go are gone."""
    folders._remover.submit(int).result(60)

"""The profile is rendered whole, and watches take inner steps off the outer ones."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import profile_worker
from bench.profile import _growth
from bench.profile_page import kept_profile, markdown, store
from bench.profile_threads import JVM, WORKER, _thread_kind
from bench.profile_worker import GENERATORS, STEPS, replace, watch, watched_generator

FOUND = {
    "records": 750_000,
    "batch": 250_000,
    "cores": 2,
    "date": "2026-11-21",
    "processes": {"worker": 4.0, "JVM": 1.0, "broker": 0.5},
    "steps": {"decode": 1.25},
    "threads": {"JVM: tasks": 0.5},
    "timeline": {"stages": 900.0, "gap": 50.0},
    "borders": {"through Spark's shuffle": 0.01},
    "memory": {"a worker, peak RSS": 250_000_000},
    "workers_system": 0.5,
    "page_faults_per_1000": 20.0,
}


def test_the_page_shows_the_cpu_without_the_broker_and_every_row() -> None:
    page = markdown(FOUND)
    assert "2 cores, 2026-11-21: 5.00 us of CPU a record without the broker" in page
    for row in ("| decode | 1.25 |", "| broker | 0.50 |", "| a worker, peak RSS | 250.00 |"):
        assert row in page


def test_the_profile_that_is_kept_is_the_one_that_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "results" / "profile.json"
    assert kept_profile(file) == "Not measured."
    store(FOUND, file)
    assert kept_profile(file) == markdown(FOUND)


def test_sums_before_the_warm_batches_do_not_count() -> None:
    told = [{"at": 1.0, "cpu": {"decode": 2.0}}, {"at": 5.0, "cpu": {"decode": 3.5, "merge": 1.0}}]
    assert _growth(told, 2.0, "cpu") == {"decode": 1.5, "merge": 1.0}
    assert _growth(told, 0.0, "cpu") == {"decode": 3.5, "merge": 1.0}


def test_an_inner_step_is_taken_off_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu: dict[str, float] = {}
    monkeypatch.setattr(profile_worker, "_cpu", cpu)

    def work() -> int:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return 0

    begin = time.thread_time()
    with watch("outer"):
        with watch("inner"):
            work()
        items = watched_generator("generator", lambda: iter([work(), 1]))
        assert list(items()) == [0, 1]
    total = time.thread_time() - begin
    assert set(cpu) == {"outer", "inner", "generator"}
    assert cpu["inner"] >= 0.02
    assert sum(cpu.values()) <= total


@pytest.mark.parametrize("step", [*STEPS, *GENERATORS], ids=lambda step: step.place)
def test_every_watched_function_exists(step: profile_worker.Step) -> None:
    seen: list[object] = []

    def same(function: Callable[..., object]) -> Callable[..., object]:
        seen.append(function)
        return function

    replace(step.place, same)
    assert callable(seen[0])


def test_threads_of_the_client_and_of_the_jvm_are_distinguished() -> None:
    assert _thread_kind(WORKER, "rdk:broker1") == "Kafka client"
    assert _thread_kind(WORKER, "python") == "Python"
    assert _thread_kind(JVM, "Executor task l") == "tasks"
    assert _thread_kind(JVM, "C1 CompilerThre") == "compiler"


def test_the_worker_module_can_be_named_to_spark() -> None:
    assert Path(profile_worker.__file__).stem == "profile_worker"

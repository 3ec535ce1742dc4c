"""The JVM that was begun early: taken when it fits, ended when it does not."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ingestd.spark import early_start
from ingestd.spark.jvm import Jvm, jvm_command
from ingestd.spark.settings import session_settings

SETTINGS = {"spark.driver.memory": "700m"}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Jvm]]:
    found: list[Jvm] = []

    def start(settings: Mapping[str, str]) -> Jvm | None:
        command = jvm_command(settings)
        if command is None:
            return None
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        )
        found.append(Jvm(process, command, tmp_path / "jvm"))
        return found[-1]

    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(early_start, "start_jvm", start)
    yield found
    early_start.end_all()


def test_the_session_takes_the_jvm_that_fits_once(begun: list[Jvm]) -> None:
    early_start.start_early(SETTINGS)
    settings = {**session_settings(SETTINGS), "spark.app.name": "any"}
    assert early_start.take_early(settings) is begun[0]
    assert early_start.take_early(settings) is None
    assert begun[0].running
    begun[0].kill()


def test_a_jvm_with_other_settings_is_ended(begun: list[Jvm]) -> None:
    early_start.start_early({"spark.driver.memory": "2g"})
    assert early_start.take_early(session_settings(SETTINGS)) is None
    assert not begun[0].running


def test_nothing_is_begun_where_the_launcher_has_to(begun: list[Jvm]) -> None:
    early_start.start_early({"spark.master": "spark://host:7077"})
    assert begun == []


def test_a_jvm_that_nobody_took_does_not_stay(begun: list[Jvm]) -> None:
    early_start.start_early(SETTINGS)
    assert early_start.archive_wanted() is None, "no session ran in it"
    early_start.end_unused()
    assert not begun[0].running


def test_the_session_s_jvm_ends_by_itself_at_the_end(begun: list[Jvm]) -> None:
    early_start.start_early(SETTINGS)
    jvm = early_start.take_early(session_settings(SETTINGS))
    assert jvm is not None
    early_start.keep(jvm)
    early_start.end_unused()
    assert jvm.running
    early_start.end_all()
    assert not jvm.running

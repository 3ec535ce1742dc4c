"""The JVM that was begun early: taken when it fits, ended when it does not."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ingestd.spark.startup import prestart
from ingestd.spark.startup.jvm import Jvm, jvm_command
from ingestd.spark.startup.settings import session_settings

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
    monkeypatch.setattr(prestart, "start_jvm", start)
    yield found
    prestart.end_all()


def test_the_session_takes_the_jvm_that_fits_once(begun: list[Jvm]) -> None:
    prestart.prestart(SETTINGS)
    settings = {**session_settings(SETTINGS), "spark.app.name": "any"}
    assert prestart.take_prestarted(settings) is begun[0]
    assert prestart.take_prestarted(settings) is None
    assert begun[0].running
    begun[0].kill()


def test_a_jvm_with_other_settings_is_ended(begun: list[Jvm]) -> None:
    prestart.prestart({"spark.driver.memory": "2g"})
    assert prestart.take_prestarted(session_settings(SETTINGS)) is None
    assert not begun[0].running


def test_nothing_is_begun_where_the_launcher_has_to(begun: list[Jvm]) -> None:
    prestart.prestart({"spark.master": "spark://host:7077"})
    assert begun == []


def test_a_jvm_that_nobody_took_does_not_stay(begun: list[Jvm]) -> None:
    prestart.prestart(SETTINGS)
    assert prestart.archive_wanted() is None, "no session ran in it"
    prestart.end_unused()
    assert not begun[0].running


def test_the_session_s_jvm_ends_by_itself_at_the_end(begun: list[Jvm]) -> None:
    prestart.prestart(SETTINGS)
    jvm = prestart.take_prestarted(session_settings(SETTINGS))
    assert jvm is not None
    prestart.keep(jvm)
    prestart.end_unused()
    assert jvm.running
    prestart.end_all()
    assert not jvm.running

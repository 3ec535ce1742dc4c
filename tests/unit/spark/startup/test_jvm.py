"""The JVM's command line, when PySpark's launcher is used, the gateway's address, prestart."""

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ingestd.errors import RetryableError
from ingestd.spark.startup import jvm as module
from ingestd.spark.startup.class_archive import FOLDER, OFF
from ingestd.spark.startup.jvm import Jvm, class_archive_path, class_path, jvm_command, spark_home
from ingestd.spark.startup.settings import JVM_OPTIONS, SWITCH, session_settings


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(FOLDER, str(tmp_path / "archives"))


def command(**extra: str) -> tuple[str, ...] | None:
    given = {name.replace("_", "."): value for name, value in extra.items()}
    return jvm_command(session_settings(given))


def test_it_runs_the_gateway_with_the_memory_and_the_options_asked_for() -> None:
    found = jvm_command(session_settings({"spark.driver.memory": "2g", JVM_OPTIONS: "-Dmine=1"}))
    assert found is not None
    assert "-Xmx2g" in found
    assert "-Dmine=1" in found
    assert found[-1] == "org.apache.spark.api.python.PythonGatewayServer"
    assert not any(one.startswith("-XX:SharedArchiveFile") for one in found)


def test_an_archive_that_is_there_is_used_and_the_user_s_flags_come_after_it() -> None:
    file = class_archive_path()
    assert file is not None
    file.parent.mkdir()
    file.touch()
    found = jvm_command(session_settings({JVM_OPTIONS: "-Xlog:gc"}))
    assert found is not None
    assert found.index(f"-XX:SharedArchiveFile={file}") < found.index("-Xlog:gc")


def test_no_archive_is_used_when_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, OFF)
    assert class_archive_path() is None
    assert command() is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.master": "spark://host:7077"},
        {"spark.master": "local-cluster[2,1,1024]"},
        {"spark.jars": "/some.jar"},
        {"spark.jars.packages": "group:name:1"},
        {"spark.driver.extraClassPath": "/some/folder"},
        {JVM_OPTIONS: "-Dname='with space'"},
    ],
)
def test_what_is_not_plain_is_left_to_the_launcher(settings: dict[str, str]) -> None:
    assert jvm_command(session_settings(settings)) is None


@pytest.mark.parametrize("name", ["SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"])
def test_an_installation_of_the_user_s_is_left_to_the_launcher(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/somewhere")
    assert command() is None


def test_the_switch_leaves_the_start_to_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert command() is None


def test_without_java_there_is_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert command() is None


def test_the_flags_are_those_of_spark_s_own_launcher() -> None:
    """All but two: a module of linear algebra's, and a setting of a database that is not used."""
    home, java = spark_home(), shutil.which("java")
    assert home is not None
    assert java is not None
    done = subprocess.run(
        [
            *(java, "-cp", os.pathsep.join(class_path(home)), "org.apache.spark.launcher.Main"),
            *("org.apache.spark.deploy.SparkSubmit", "pyspark-shell"),
        ],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {word for word in done.stdout.split("\0") if word.startswith(("-X", "-D", "--"))}
    found = jvm_command(session_settings({}))
    assert found is not None
    missing = {one for one in wanted - set(found) if not one.startswith("-Xmx")}
    assert missing == {
        "--add-modules=jdk.incubator.vector",
        "-Dderby.connection.requireAuthentication=false",
    }


def process(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)


def test_the_address_is_read_once_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "jvm"
    folder.mkdir()
    jvm = Jvm(process("input()"), ("java",), folder)
    (folder / "address").write_bytes(struct.pack("!ii", 4711, 6) + b"secret")
    address = jvm.gateway()
    assert (address.port, address.secret) == (4711, "secret")
    assert not folder.exists()
    jvm.close()
    assert not jvm.running


def test_a_jvm_that_ends_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "jvm"
    folder.mkdir()
    jvm = Jvm(process("raise SystemExit(3)"), ("java",), folder)
    with pytest.raises(RetryableError, match="ended with 3"):
        jvm.gateway()
    assert not folder.exists()
    jvm.kill()


def test_kill_does_not_wait_for_a_process_that_does_not_listen(tmp_path: Path) -> None:
    begun = time.monotonic()
    jvm = Jvm(process("import time; time.sleep(60)"), ("java",), tmp_path / "none")
    jvm.kill()
    assert not jvm.running
    assert time.monotonic() - begun < 50


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
    monkeypatch.setattr(module, "start_jvm", start)
    yield found
    module.end_all()


def test_the_session_takes_the_jvm_that_fits_once(begun: list[Jvm]) -> None:
    module.prestart(SETTINGS)
    settings = {**session_settings(SETTINGS), "spark.app.name": "any"}
    assert module.take_prestarted(settings) is begun[0]
    assert module.take_prestarted(settings) is None
    assert begun[0].running
    begun[0].kill()


def test_a_jvm_with_other_settings_is_ended(begun: list[Jvm]) -> None:
    module.prestart({"spark.driver.memory": "2g"})
    assert module.take_prestarted(session_settings(SETTINGS)) is None
    assert not begun[0].running


def test_nothing_is_begun_where_the_launcher_has_to(begun: list[Jvm]) -> None:
    module.prestart({"spark.master": "spark://host:7077"})
    assert begun == []


def test_a_jvm_that_nobody_took_does_not_stay(begun: list[Jvm]) -> None:
    module.prestart(SETTINGS)
    assert module.archive_wanted() is None, "no session ran in it"
    module.end_unused()
    assert not begun[0].running


def test_the_session_s_jvm_ends_by_itself_at_the_end(begun: list[Jvm]) -> None:
    module.prestart(SETTINGS)
    jvm = module.take_prestarted(session_settings(SETTINGS))
    assert jvm is not None
    module.keep(jvm)
    module.end_unused()
    assert jvm.running
    module.end_all()
    assert not jvm.running

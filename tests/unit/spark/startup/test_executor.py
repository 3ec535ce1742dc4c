"""The command line of an executor in a pod, and the executor that it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.errors import ConfigError
from ingestd.spark.startup.class_archive import FOLDER
from ingestd.spark.startup.executor import executor_command
from ingestd.spark.startup.jvm import class_archive_path, jvm_command
from ingestd.spark.startup.settings import LOG_FLAG, session_settings

# What Spark 4 sets in a pod, of which the image makes an executor.
POD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_EXECUTOR_POD_NAME": "shop-exec-7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_0": "-XX:TieredStopAtLevel=1",
    "SPARK_JAVA_OPT_2": "-Dwith=a space",
}


def test_it_has_java_class_path_and_archive_of_the_driver_and_the_flags_that_spark_gives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "archives"))
    file = class_archive_path()
    assert file is not None
    file.parent.mkdir()
    file.touch()
    driver = jvm_command(session_settings({}))
    assert driver is not None
    found = executor_command(POD)
    assert found[:3] == driver[:3]
    flags = driver[4 : driver.index(LOG_FLAG)]  # after the heap
    assert found[3 : 3 + len(flags)] == flags
    rest = found[3 + len(flags) :]
    options = ("-XX:TieredStopAtLevel=1", "-Dwith=a space", "-Dlast=1")
    assert rest[:5] == (*options, "-Xms512m", "-Xmx512m")
    assert dict(zip(rest[6::2], rest[7::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@127.0.0.1:1",
        "--executor-id": "7",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "127.0.0.1",
        "--resourceProfileId": "0",
        "--podName": "shop-exec-7",
    }


def test_classes_of_the_user_come_after_those_of_the_archive() -> None:
    plain = executor_command(POD)[2]
    assert executor_command({**POD, "SPARK_CLASSPATH": "/more.jar"})[2] == f"{plain}:/more.jar"


def test_an_environment_that_spark_did_not_make_is_named() -> None:
    given = {name: value for name, value in POD.items() if name != "SPARK_EXECUTOR_POD_IP"}
    with pytest.raises(ConfigError, match=r"^SPARK_EXECUTOR_POD_IP is not set: Spark sets it"):
        executor_command(given)


def test_the_command_becomes_an_executor_that_calls_its_driver() -> None:
    """There is no driver at port 1, which the executor says and ends."""
    done = subprocess.run(
        [sys.executable, "-c", "from ingestd.cli.main import main; main()", "executor"],
        env={**os.environ, **POD},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "KubernetesExecutorBackend" in done.stderr
    assert "127.0.0.1:1" in done.stderr

"""Settings of the session: defaults, what a local master adds, and the user's last word."""

import os
from pathlib import Path

import ingestd
from ingestd.spark.settings import session_settings


def test_a_local_session_binds_to_loopback_and_the_user_has_the_last_word() -> None:
    settings = session_settings({"spark.driver.memory": "3g", "spark.master": "local[3]"})
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.driver.memory"] == "3g"
    assert settings["spark.python.daemon.module"] == "ingestd.spark.python_daemon"


def test_a_cluster_reaches_the_driver_by_its_own_name() -> None:
    settings = session_settings({"spark.master": "spark://host:7077"})
    assert "spark.driver.host" not in settings
    assert "spark.driver.bindAddress" not in settings


def test_the_user_s_jvm_options_come_after_ours() -> None:
    name = "spark.driver.extraJavaOptions"
    options = session_settings({name: "-XX:+UseG1GC"})[name]
    assert options.endswith(" -XX:+UseG1GC")
    assert "log4j2.configurationFile=file:" in options


def test_workers_find_a_package_that_is_not_installed() -> None:
    path = session_settings({})["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert str(Path(ingestd.__file__).parent.parent) in path

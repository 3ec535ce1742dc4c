"""Settings of the session: defaults, what a local master adds, and the user's last word."""

import os
from pathlib import Path

import pytest

import ingestd
from ingestd.errors import ConfigError
from ingestd.spark.startup.settings import EXECUTOR_JVM_OPTIONS, JVM_OPTIONS, session_settings


def test_a_local_session_binds_to_loopback_and_the_user_has_the_last_word() -> None:
    settings = session_settings({"spark.driver.memory": "3g", "spark.master": "local[3]"})
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.driver.memory"] == "3g"
    assert settings["spark.python.daemon.module"] == "ingestd.spark.startup.python_daemon"


def test_a_cluster_reaches_the_driver_by_its_own_name() -> None:
    settings = session_settings({"spark.master": "spark://host:7077"})
    assert "spark.driver.host" not in settings
    assert "spark.driver.bindAddress" not in settings


@pytest.mark.parametrize("name", [JVM_OPTIONS, EXECUTOR_JVM_OPTIONS])
def test_the_user_s_jvm_options_come_after_ours(name: str) -> None:
    options = session_settings({name: "-Dmine=1"})[name]
    assert options.endswith(" -Dmine=1")
    assert "log4j2.configurationFile=file:" in options


@pytest.mark.parametrize("name", [JVM_OPTIONS, EXECUTOR_JVM_OPTIONS])
def test_jvms_of_driver_and_executors_have_one_compiler_and_one_collector(name: str) -> None:
    assert "-XX:TieredStopAtLevel=1 " in session_settings({})[name]
    assert "-XX:+UseSerialGC" in session_settings({name: "-Xss2m"})[name]
    other = session_settings({name: "-XX:+UseG1GC"})[name]
    assert other.endswith(" -XX:+UseG1GC")
    assert "UseSerialGC" not in other  # Java refuses two collectors


def test_workers_find_a_package_that_is_not_installed() -> None:
    path = session_settings({})["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert str(Path(ingestd.__file__).parent.parent) in path


@pytest.mark.parametrize("master", ["local", "local[*,4]", "yarn", "k8s://https://h"])
def test_a_session_authenticates_its_channels_with_a_secret_of_spark_s(master: str) -> None:
    settings = session_settings({"spark.master": master})
    assert settings["spark.authenticate"] == "true"
    assert "spark.authenticate.secret" not in settings


def test_where_spark_makes_no_secret_each_session_has_its_own() -> None:
    made = [session_settings({"spark.master": "local-cluster[2,1,1024]"}) for _ in range(2)]
    assert all(one["spark.authenticate"] == "true" for one in made)
    assert len({one["spark.authenticate.secret"] for one in made}) == 2


def test_a_standalone_cluster_authenticates_by_the_secret_that_it_was_given() -> None:
    given = {"spark.master": "spark://host:7077", "spark.authenticate.secret": "known"}
    assert session_settings(given)["spark.authenticate"] == "true"
    assert session_settings(given)["spark.authenticate.secret"] == "known"


def test_a_driver_on_kubernetes_deletes_nothing_that_the_charts_role_does_not_let_it() -> None:
    master = {"spark.master": "k8s://https://kubernetes.default.svc"}
    name = "spark.kubernetes.driver.service.deleteOnTermination"
    assert session_settings(master)[name] == "false"
    assert session_settings(master)["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"
    assert session_settings({**master, name: "true"})[name] == "true"
    assert name not in session_settings({})


PORT = "spark.executorEnv.INGESTD_EXCHANGE_PORT"


def test_executors_exchange_files_unless_spark_encrypts_or_keeps_the_shuffle() -> None:
    cluster = {"spark.master": "spark://host:7077"}
    assert session_settings(cluster)[PORT] == "0"
    assert session_settings({**cluster, PORT: "7081"})[PORT] == "7081"
    assert session_settings({**cluster, PORT: ""})[PORT] == ""
    assert PORT not in session_settings({"spark.master": "local[2]"})
    for port in ("port", "65536", "-1", "80.5"):
        with pytest.raises(ConfigError, match=f"{PORT} is '{port}'"):
            session_settings({**cluster, PORT: port})
    assert session_settings({**cluster, "spark.shuffle.manager": "sort"})[PORT] == "0"
    remote = {"spark.shuffle.manager": "org.apache.spark.shuffle.RssShuffleManager"}
    assert session_settings({**cluster, **remote})[PORT] == ""
    for name in ("spark.network.crypto.enabled", "spark.shuffle.service.enabled"):
        assert session_settings({**cluster, name: "true"})[PORT] == ""
        assert session_settings({**cluster, name: "false"})[PORT] == "0"
        # The port may be that of the chart, and the other setting the user's own.
        assert session_settings({**cluster, name: "true", PORT: "7081"})[PORT] == ""


def test_without_internals_executors_exchange_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGESTD_SPARK_INTERNALS", "off")
    assert session_settings({"spark.master": "spark://host:7077", PORT: "7081"})[PORT] == ""

"""What PySpark's launcher is told: nothing that a process list should not show."""

import logging

import pytest
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError

from ingestd.errors import ConfigError
from ingestd.spark.startup import session
from ingestd.spark.startup.session import build_session, warm_up


def test_no_secret_is_on_the_command_line_of_spark_s_launcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[dict[str, str]] = []

    def launch(conf: SparkConf, _: object) -> None:
        seen.append(dict(conf.getAll()))  # PySpark makes arguments of all of it
        raise OSError("no Java here")

    monkeypatch.setattr(session, "launch_gateway", launch)
    settings = {
        "spark.master": "local-cluster[2,1,1024]",
        "spark.hadoop.fs.s3a.secret.key": "hush",
        "spark.ssl.keyPassword": "hush",
    }
    with pytest.raises(ConfigError, match="no Java here"):
        build_session("test", settings)
    assert seen[0]["spark.authenticate"] == "true"
    assert "spark.authenticate.secret" not in seen[0]
    assert "hush" not in seen[0].values()


class Broken:
    """A context that cannot run anything."""

    def parallelize(self, *_: object) -> object:
        raise PySparkRuntimeError("no executor")


def test_a_failed_warm_up_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    warm_up(Broken()).join(30)  # type: ignore[arg-type]  # all that it calls
    assert [record.message for record in caplog.records] == ["warm_up_failed"]

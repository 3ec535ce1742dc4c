"""Arguments of PySpark's launcher: a process list shows no secret."""

import os
import subprocess
import sys

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf

from ingestd.errors import ConfigError, SparkMasterError, SparkSettingError
from ingestd.spark.startup import session
from ingestd.spark.startup.session import build_session


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
    with pytest.raises(SparkSettingError, match="no Java here"):
        build_session("test", settings)
    assert seen[0]["spark.authenticate"] == "true"
    assert "spark.authenticate.secret" not in seen[0]
    assert "hush" not in seen[0].values()


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"PATH": "/nowhere"}, "PATH has no java"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME is /nowhere, which has no bin/java"),
    ],
)
def test_without_java_there_is_one_error_and_no_noise_of_shells(
    variables: dict[str, str], missing: str
) -> None:
    code = (
        "from ingestd.spark.startup.session import build_session\n"
        "from ingestd.errors import ConfigError\n"
        "try: build_session('test', {})\n"
        "except ConfigError as error: print(error.message)"
    )
    environment = {**os.environ, "JAVA_HOME": "", **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == (
        f"Spark does not start, it needs a Java 17 runtime and {missing}: install one, or set "
        "JAVA_HOME to its folder\n"
    )


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "An error occurred while calling None.SparkSession.\n: java.lang.IllegalStateException:"
            " Cannot call methods on a stopped SparkContext.\n\tat org.Spark",
            SparkMasterError,
            r"spark\.master spark://h:1 does not accept the pipeline: no connection",
        ),
        (
            "An error occurred.\n: java.lang.IllegalStateException: Spark context stopped while "
            "waiting for backend\n\tat org.Spark",
            SparkMasterError,
            r"spark\.master spark://h:1 does not accept the pipeline: no connection",
        ),
        (
            "An error occurred.\n: java.lang.NumberFormatException: Size must be in bytes,\nnot abc"
            "\n\tat org.Spark",
            SparkSettingError,
            r"spark\.master spark://h:1 and .*: java\.lang\.NumberFormatException: .* not abc$",
        ),
    ],
)
def test_what_spark_refuses_is_a_configuration_error(
    monkeypatch: pytest.MonkeyPatch, text: str, kind: type[ConfigError], message: str
) -> None:
    class RefusedError(Py4JJavaError):
        def __init__(self) -> None:
            Exception.__init__(self, text)

        def __str__(self) -> str:
            return text

    def refuse(_: object) -> None:
        raise RefusedError

    monkeypatch.setattr(session, "_session", refuse)
    with pytest.raises(kind, match=message):
        build_session("test", {"spark.master": "spark://h:1"})

"""Arguments of PySpark's launcher: a process list shows no secret."""

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
    with pytest.raises(ConfigError, match="no Java here"):
        build_session("test", settings)
    assert seen[0]["spark.authenticate"] == "true"
    assert "spark.authenticate.secret" not in seen[0]
    assert "hush" not in seen[0].values()


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

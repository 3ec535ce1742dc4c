"""What a session does to spare the JVM questions; that Spark runs with it is for other tests."""

from types import SimpleNamespace
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ingestd.spark.session import _remember_classes


class Asked:
    """Something of the JVM's: each attribute that Python does not find is a question to it."""

    def __init__(self, questions: list[str], unknown: str = "") -> None:
        self._questions = questions
        self._unknown = unknown

    def __getattr__(self, name: str) -> "Asked":
        if name == self._unknown:
            raise Py4JError(f"{name} does not exist in the JVM")
        self._questions.append(name)
        return Asked(self._questions)


def session(view: Asked) -> SparkSession:
    return cast("SparkSession", SimpleNamespace(_jvm=view))


def test_classes_of_every_batch_are_asked_for_once() -> None:
    questions: list[str] = []
    view: Any = Asked(questions)
    _remember_classes(session(view))
    questions.clear()
    assert view.PythonRDD.collectAndServe is view.PythonRDD.collectAndServe
    getattr(getattr(view, "org.apache.spark.sql.classic.SparkSession$"), "MODULE$")
    assert questions == []
    assert view.PythonRDD.another
    assert questions == ["another"]


def test_a_spark_that_lacks_a_class_is_asked_as_ever() -> None:
    questions: list[str] = []
    view: Any = Asked(questions, unknown="PythonUtils")
    _remember_classes(session(view))
    questions.clear()
    assert view.PythonRDD
    assert questions == []
    assert view.SimplePythonFunction
    assert questions == ["SimplePythonFunction"]

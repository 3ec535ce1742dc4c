"""The job that is run for what it leaves behind: its failure is nobody's."""

import logging

import pytest
from pyspark.errors import PySparkRuntimeError

from ingestd.spark.startup.warm_up import warm_up


class Broken:
    """A context that cannot run anything."""

    def parallelize(self, *_: object) -> object:
        raise PySparkRuntimeError("no executor")


def test_its_failure_is_only_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    warm_up(Broken()).join(30)  # type: ignore[arg-type]  # all that it calls
    assert [record.message for record in caplog.records] == ["warm_up_failed"]

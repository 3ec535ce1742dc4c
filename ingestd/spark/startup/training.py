"""Makes the archive of Spark's classes: a session that does what a pipeline does, and ends.

    python -m ingestd.spark.startup.training

Needs neither brokers nor a warehouse. Prints the name of the archive, also when it was there.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from ingestd.spark.startup.class_archive import (
    FOLDER,
    OFF,
    publish,
    record_into,
    recording_flags,
)
from ingestd.spark.startup.jvm import class_archive_path, end_all
from ingestd.spark.startup.session import build_session
from ingestd.spark.startup.settings import JVM_OPTIONS

_BATCHES = 3
_PATIENCE_SECONDS = 300.0


class CountingSource(DataSource):
    """A stream of as many batches as anybody asks for, without rows."""

    @classmethod
    def name(cls) -> str:
        """The name for `readStream.format`."""
        return "ingestd_counting"

    def schema(self) -> str:
        """One column."""
        return "number long"

    def streamReader(self, schema: object) -> "CountingReader":  # noqa: N802  (Spark's name)
        """The reader of one query."""
        return CountingReader()


class CountingReader(DataSourceStreamReader):
    """Each offset is one more than the last."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """Zero."""
        return {"number": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  (Spark's name)
        """No limit."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """The next number."""
        return {"number": int(start["number"]) + 1}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """One that nobody reads."""
        return [InputPartition(end["number"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Nothing."""
        return iter(())


def make_archive() -> Path | None:
    """Make the archive if it is not there; None when this machine or its settings have none."""
    file = class_archive_path()
    if file is None or file.is_file():
        return file
    made = record_into(file)
    os.environ[FOLDER] = OFF
    session = build_session("training", {JVM_OPTIONS: " ".join(recording_flags(made))})
    with tempfile.TemporaryDirectory() as folder:
        _stream(session, folder)
    session.stop()
    end_all()
    return file if publish(made, file) else None


def _stream(session: SparkSession, folder: str) -> None:
    session.dataSource.register(CountingSource)
    done: list[int] = []

    def run(_: DataFrame, batch_id: int) -> None:
        _jobs(session)
        done.append(batch_id)

    writer = session.readStream.format(CountingSource.name()).load().writeStream
    writer = writer.option("checkpointLocation", folder).trigger(processingTime="100 milliseconds")
    query = writer.foreachBatch(run).start()
    end = time.monotonic() + _PATIENCE_SECONDS
    while len(done) < _BATCHES and query.isActive and time.monotonic() < end:
        time.sleep(0.05)
    query.stop()


def _jobs(session: SparkSession) -> None:
    """One task alone, and two stages with a shuffle between them."""
    context = session.sparkContext
    context.parallelize([[1]], 1).mapPartitions(list).collect()
    pairs = context.parallelize([(0, b"a"), (1, b"b")], 2).mapPartitions(list)
    pairs.partitionBy(2, int).mapPartitions(list).collect()


def main() -> int:
    """Make it; status 1 when there is none."""
    file = make_archive()
    if file is None:
        sys.stderr.write("no archive of classes was made: the JVM has no class-data sharing, or\n")
        sys.stderr.write(f"{FOLDER} is {OFF}, or the installation is not a plain PySpark\n")
        return 1
    sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

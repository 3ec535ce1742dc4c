"""Create the archive of Spark's classes from a short session that works like a pipeline.

    python -m ingestd.spark.startup.training

This needs neither brokers nor a warehouse. The path of the archive is printed, also if it existed
before.
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
    recording_flags,
    temporary_archive,
)
from ingestd.spark.startup.jvm import class_archive_path, end_all
from ingestd.spark.startup.session import build_session
from ingestd.spark.startup.settings import JVM_OPTIONS

_BATCHES = 3
_TIMEOUT_SECONDS = 300.0


class CountingSource(DataSource):
    """A data source with a few empty batches, for a query that needs no broker."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `readStream.format`."""
        return "ingestd_counting"

    def schema(self) -> str:
        """Return the schema, one column."""
        return "number long"

    def streamReader(self, schema: object) -> "CountingReader":  # noqa: N802  (Spark's name)
        """Return the reader of one query."""
        return CountingReader()


class CountingReader(DataSourceStreamReader):
    """A reader of empty batches, whose offsets count up by one.

    Like its source, it serves a query that needs no broker.
    """

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """Return offset 0."""
        return {"number": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  (Spark's name)
        """Return a read limit that does not limit batches."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """Return the offset after `start`, or `start` after the last batch.

        A query that waits for its next batch ends quietly when it is stopped. One that runs a
        batch fails, and Spark searches the text of the error in a way that may overflow the stack.
        """
        return {"number": min(int(start["number"]) + 1, _BATCHES)}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """Return one empty partition."""
        return [InputPartition(end["number"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Return no rows."""
        return iter(())


def create_archive() -> Path | None:
    """Create the class archive if it is missing; return its path, or None if it cannot be created.

    To create it, runs a Spark session, and then ends all JVMs of this process; JVMs that this
    process starts later use no class archive. Raises ConfigError if Java is missing, and
    SparkSettingError or SparkMasterError if Spark does not start.
    """
    file = class_archive_path()
    if file is None or file.is_file():
        return file
    recorded = temporary_archive(file)
    os.environ[FOLDER] = OFF
    session = build_session("training", {JVM_OPTIONS: " ".join(recording_flags(recorded))})
    with tempfile.TemporaryDirectory() as folder:
        _stream(session, folder)
    session.stop()
    end_all()
    return file if publish(recorded, file) else None


def _stream(session: SparkSession, folder: str) -> None:
    session.dataSource.register(CountingSource)
    done: list[int] = []

    def run(_: DataFrame, batch_id: int) -> None:
        _jobs(session)
        done.append(batch_id)

    writer = session.readStream.format(CountingSource.name()).load().writeStream
    writer = writer.option("checkpointLocation", folder).trigger(processingTime="100 milliseconds")
    query = writer.foreachBatch(run).start()
    end = time.monotonic() + _TIMEOUT_SECONDS
    while len(done) < _BATCHES and query.isActive and time.monotonic() < end:
        time.sleep(0.05)
    query.stop()


def _jobs(session: SparkSession) -> None:
    """Run a job of one task, and a job of two stages with a shuffle."""
    context = session.sparkContext
    context.parallelize([[1]], 1).mapPartitions(list).collect()
    pairs = context.parallelize([(0, b"a"), (1, b"b")], 2).mapPartitions(list)
    pairs.partitionBy(2, int).mapPartitions(list).collect()


def main() -> int:
    """Create the archive and print its path; return exit code 0, or 1 if it cannot be created."""
    file = create_archive()
    if file is None:
        sys.stderr.write("no class archive was created: the JVM has no class-data sharing, or\n")
        sys.stderr.write(f"{FOLDER} is {OFF}, or the installation is not a plain PySpark\n")
        return 1
    sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The rows of a partition in another number of buckets: files for the new ones, in full.

A row of bucket b goes to a bucket that is b modulo the greatest common divisor of both numbers. So
a new bucket that takes the rows of one old bucket gets them in order, at the top level at once;
one that takes those of several gets a run of each, and the runs are merged then. Specification:
Bucket.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.spec.compaction_options import compaction_options
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.buckets.assigner import assign_among
from ingestd.paimon.table.compact.bucket import CompactBucket
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.rewrite.merged_stream import bucket_rows, merged_runs
from ingestd.paimon.table.write.commit_message import CommitMessage

OPEN_WRITERS = 8
"""New buckets that are written at a time: each holds a row group in memory."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A partition on its way from a number of buckets to another one."""

    table: FileStoreTable
    partition: bytes
    before: int
    after: int

    def feeds(self, old: int, new: int) -> bool:
        """Whether rows of an old bucket may go to a new one."""
        return (old - new) % math.gcd(self.before, self.after) == 0

    def bucket(self, number: int, files: Sequence[DataFileMeta] = ()) -> CompactBucket:
        """A new bucket with these files."""
        return CompactBucket(self.table, self.partition, number, self.after, tuple(files))


def rewritten(rewrite: Rewrite, old: Sequence[CompactBucket]) -> Iterator[CommitMessage]:
    """The new files of each bucket that gets rows.

    FormatError for a row that is not where the bucket function puts it. Nothing is left behind
    then of what was not given yet.
    """
    step = math.gcd(rewrite.before, rewrite.after)
    for rest in range(step):
        mine = [bucket for bucket in old if bucket.bucket % step == rest]
        numbers = list(range(rest, rewrite.after, step))
        for start in range(0, len(numbers), OPEN_WRITERS):
            if mine:
                yield from _written(rewrite, mine, numbers[start : start + OPEN_WRITERS])


def _written(
    rewrite: Rewrite, old: Sequence[CompactBucket], numbers: Sequence[int]
) -> Iterator[CommitMessage]:
    keyed = bool(rewrite.table.schema.primary_keys)
    level = compaction_options(rewrite.table.schema).num_levels - 1 if keyed else 0
    merges = keyed and len(old) > 1
    sink = _Sink(rewrite, numbers, 0 if merges else level)
    try:
        for bucket in old:
            for rows in bucket_rows(bucket):
                sink.add(bucket, rows)
            if keyed:
                sink.end_run()
        sink.end_run()
        if merges:
            sink.merge(level)
    except BaseException:
        sink.abort()
        raise
    for number in numbers:
        files = tuple(file for run in sink.runs[number] for file in run)
        if files:
            yield CommitMessage(rewrite.partition, number, rewrite.after, new_files=files)


class _Sink:
    """Some new buckets, and the sorted runs that each has got."""

    def __init__(self, rewrite: Rewrite, numbers: Sequence[int], level: int) -> None:
        self.runs: dict[int, list[list[DataFileMeta]]] = {number: [] for number in numbers}
        self._rewrite = rewrite
        self._level = level
        self._writers: dict[int, RollingWriter] = {}

    def add(self, origin: CompactBucket, rows: pa.Table) -> None:
        """Put rows of an old bucket where they belong, if that is here."""
        rewrite = self._rewrite
        buckets = assign_among(rewrite.table, rows, rewrite.after)
        for number in np.unique(buckets).tolist():
            if not rewrite.feeds(origin.bucket, number):
                raise FormatError(
                    f"table {rewrite.table.name}: bucket {origin.bucket} has rows of another one; "
                    "`ingestd verify` names its file"
                )
            if number in self.runs:
                self._writer(number).add(rows.filter(pa.array(buckets == number)))

    def end_run(self) -> None:
        """What comes next is not behind what was added so far."""
        for number in list(self._writers):
            files = self._writers[number].close()
            del self._writers[number]
            if files:
                self.runs[number].append(files)

    def merge(self, level: int) -> None:
        """Make one run of those of each bucket."""
        for number, runs in self.runs.items():
            bucket = self._rewrite.bucket(number)
            writer = RollingWriter(bucket.place(level))
            try:
                for rows in merged_runs(bucket, runs):
                    writer.add(rows)
                files = writer.close()
            except BaseException:
                writer.abort()
                raise
            self.runs[number] = [files]
            for run in runs:
                bucket.delete(run, ())

    def abort(self) -> None:
        """Delete everything that was written."""
        for writer in self._writers.values():
            writer.abort()
        for number, runs in self.runs.items():
            for run in runs:
                self._rewrite.bucket(number).delete(run, ())

    def _writer(self, number: int) -> RollingWriter:
        if number not in self._writers:
            place = self._rewrite.bucket(number).place(self._level)
            self._writers[number] = RollingWriter(place)
        return self._writers[number]

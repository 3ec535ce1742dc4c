"""The sorted runs of the buckets of a primary-key table, and their numbers for the scheduler.

The scheduler adds the number of files of later appends, so that it can choose the next bucket
without reading manifests.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#number-of-sorted-runs-to-trigger-compaction
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.paimon.spec.binary_row import comparable_key
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import BucketKey
from ingestd.paimon.table.compact.universal_compaction import RunSize
from ingestd.paimon.table.write.commit_message import CommitMessage


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files of one level in key order; each key is in at most one of them."""

    level: int
    files: tuple[DataFileMeta, ...]

    @property
    def size(self) -> RunSize:
        """The level and the size of the run, for the planner."""
        return RunSize(self.level, sum(file.file_size for file in self.files))


@dataclass(frozen=True, slots=True)
class Levels:
    """The sorted runs of a bucket from newest to oldest; levels are numbered 0 to `max_level`."""

    runs: tuple[SortedRun, ...]
    max_level: int

    @classmethod
    def of(
        cls, types: Sequence[DataType], files: Sequence[DataFileMeta], num_levels: int
    ) -> "Levels":
        """Group the live files of a bucket into sorted runs; `types` are the types of its key.

        There are `num_levels` levels, or more if a file has a higher level.
        """
        by_level: dict[int, list[DataFileMeta]] = defaultdict(list)
        for file in files:
            by_level[file.level].append(file)
        newest = sorted(by_level.pop(0, []), key=_age)
        runs = [SortedRun(0, (file,)) for file in newest]
        for level, own in sorted(by_level.items()):
            own.sort(key=lambda file: comparable_key(types, file.min_key))
            runs.append(SortedRun(level, tuple(own)))
        highest = max((run.level for run in runs), default=0)
        return cls(tuple(runs), max(num_levels - 1, highest))

    @property
    def sizes(self) -> list[RunSize]:
        """The levels and sizes of the runs, for the planner."""
        return [run.size for run in self.runs]

    @property
    def highest(self) -> int:
        """The highest level that has a file, -1 for a bucket without files."""
        return max((run.level for run in self.runs), default=-1)

    @property
    def last_full_ms(self) -> int | None:
        """The time at which the newest file of the top level was created; None if unknown.

        It is in milliseconds of the epoch, and counts as the time of the last full compaction.
        """
        top = [run for run in self.runs if run.level == self.max_level]
        times = [file.creation_time_ms for run in top for file in run.files]
        return max((time for time in times if time is not None), default=None)


def _age(file: DataFileMeta) -> tuple[int, int, int, str]:
    """Return a sort key that orders files from the newest to the oldest.

    Files of several writers may share sequence numbers, so other properties break ties.
    """
    return (
        -file.max_sequence_number,
        file.min_sequence_number,
        file.creation_time_ms or 0,
        file.file_name,
    )


@dataclass(frozen=True, slots=True)
class SortedRuns:
    """The number of sorted runs by bucket, as of a snapshot (None: the table has no snapshot).

    `runs` omits buckets with fewer than two runs. `level_0` is the number of level-0 files in all
    buckets.
    """

    snapshot_id: int | None
    level_0: int = 0
    runs: Mapping[BucketKey, int] = field(default_factory=dict)


def sorted_runs_of(
    snapshot_id: int | None,
    files: Mapping[BucketKey, Sequence[DataFileMeta]],
    compacted: Iterable[CommitMessage] = (),
) -> SortedRuns:
    """Return the number of sorted runs by bucket, after the compactions of some buckets.

    `files` are the live files of each bucket before these compactions, `compacted` the messages of
    the compactions, and `snapshot_id` is the snapshot of `files` (None: no snapshot).
    """
    files = dict(files)
    for message in compacted:
        gone = {file.file_name for file in message.compact_before}
        left = [
            file for file in files[message.partition, message.bucket] if file.file_name not in gone
        ]
        files[message.partition, message.bucket] = [*left, *message.compact_after]
    level_0 = {
        bucket_key: sum(1 for file in own if file.level == 0) for bucket_key, own in files.items()
    }
    runs = {
        bucket_key: level_0[bucket_key] + len({file.level for file in own if file.level > 0})
        for bucket_key, own in files.items()
    }
    crowded = {bucket_key: count for bucket_key, count in runs.items() if count > 1}
    return SortedRuns(snapshot_id, sum(level_0.values()), crowded)

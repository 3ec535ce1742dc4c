"""The files of one bucket of a primary-key table as sorted runs, newest first.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#number-of-sorted-runs-to-trigger-compaction
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.table.compact.plan import RunSize
from ingestd.paimon.table.read.scan_plan import comparable_key


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files of one level in key order; each key is in at most one of them."""

    level: int
    files: tuple[DataFileMeta, ...]

    @property
    def size(self) -> RunSize:
        """Return the run as input of the planner."""
        return RunSize(self.level, sum(file.file_size for file in self.files))


@dataclass(frozen=True, slots=True)
class Levels:
    """The sorted runs of a bucket from newest to oldest; levels are numbered up to `max_level`."""

    runs: tuple[SortedRun, ...]
    max_level: int

    @classmethod
    def of(
        cls, types: Sequence[DataType], files: Sequence[DataFileMeta], num_levels: int
    ) -> "Levels":
        """Group live files into sorted runs.

        Levels above `num_levels` are included if they have files.
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
        """Return the runs as input of the planner."""
        return [run.size for run in self.runs]

    @property
    def highest(self) -> int:
        """Return the highest level that has a file, -1 for a bucket without files."""
        return max((run.level for run in self.runs), default=-1)

    @property
    def last_full_ms(self) -> int | None:
        """Return the time of the last write to the top level; None if unknown."""
        top = [run for run in self.runs if run.level == self.max_level]
        times = [file.creation_time_ms for run in top for file in run.files]
        return max((time for time in times if time is not None), default=None)


def _age(file: DataFileMeta) -> tuple[int, int, int, str]:
    """Return the sort key, newest first; files of several writers may share sequence numbers."""
    return (
        -file.max_sequence_number,
        file.min_sequence_number,
        file.creation_time_ms or 0,
        file.file_name,
    )

"""Numbers of sorted runs in the buckets of a primary-key table.

A scheduler that counts what is appended from there on needs no manifest to know which bucket is
next.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#number-of-sorted-runs-to-trigger-compaction
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.write.commit_message import CommitMessage

Place = tuple[bytes, int]
"""A bucket: the serialized partition row, and its number."""


@dataclass(frozen=True, slots=True)
class SortedRuns:
    """Sorted runs by bucket as of a snapshot (None: there was none); those with one are left out.

    `level_0` counts the files of level 0 in all buckets.
    """

    snapshot_id: int | None
    level_0: int = 0
    runs: Mapping[Place, int] = field(default_factory=dict)


def sorted_runs_of(
    snapshot_id: int | None,
    files: Mapping[Place, Sequence[DataFileMeta]],
    compacted: Iterable[CommitMessage] = (),
) -> SortedRuns:
    """Return the standing of live files after compactions of some of them."""
    files = dict(files)
    for one in compacted:
        gone = {file.file_name for file in one.compact_before}
        left = [file for file in files[one.partition, one.bucket] if file.file_name not in gone]
        files[one.partition, one.bucket] = [*left, *one.compact_after]
    level_0 = {place: sum(1 for one in own if one.level == 0) for place, own in files.items()}
    runs = {
        place: level_0[place] + len({one.level for one in own if one.level > 0})
        for place, own in files.items()
    }
    crowded = {place: count for place, count in runs.items() if count > 1}
    return SortedRuns(snapshot_id, sum(level_0.values()), crowded)

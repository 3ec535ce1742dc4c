"""Count the sorted runs in the buckets of a primary-key table.

A scheduler that adds the files of later appends to these counts can choose the next bucket without
reading manifests.

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
    """Sorted runs by bucket as of a snapshot (None: no snapshot); buckets with one run are omitted.

    `level_0` is the number of files of level 0 in all buckets.
    """

    snapshot_id: int | None
    level_0: int = 0
    runs: Mapping[Place, int] = field(default_factory=dict)


def sorted_runs_of(
    snapshot_id: int | None,
    files: Mapping[Place, Sequence[DataFileMeta]],
    compacted: Iterable[CommitMessage] = (),
) -> SortedRuns:
    """Return the sorted runs of live files after compactions of some of them."""
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

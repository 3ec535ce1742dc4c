"""What a compaction did in a bucket, in figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.write.commit_message import CommitMessage


@dataclass(frozen=True, slots=True)
class BucketReport:
    """What a compaction did in one bucket; sizes in bytes, `upgraded` files only moved."""

    partition: bytes
    bucket: int
    reason: str
    files_before: int
    files_after: int
    upgraded: int
    rows_before: int
    rows_after: int
    bytes_read: int
    bytes_written: int
    changelog_rows: int
    lost: bool = False


def report_of(
    reason: str, message: CommitMessage, made: Sequence[DataFileMeta], *, lost: bool
) -> BucketReport:
    """Return the figures of one bucket's message, for which the files `made` were written."""
    before, after = message.compact_before, message.compact_after
    old = {file.file_name for file in before}
    moved = {file.file_name for file in after if file.file_name in old}
    return BucketReport(
        partition=message.partition,
        bucket=message.bucket,
        reason=reason,
        files_before=len(before),
        files_after=len(after),
        upgraded=len(moved),
        rows_before=sum(file.row_count for file in before),
        rows_after=sum(file.row_count for file in after),
        bytes_read=sum(file.file_size for file in before if file.file_name not in moved),
        bytes_written=sum(file.file_size for file in made),
        changelog_rows=sum(file.row_count for file in message.compact_changelog),
        lost=lost,
    )

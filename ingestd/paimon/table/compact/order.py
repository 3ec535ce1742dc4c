"""What is planned for single buckets, and which of it comes first."""

from collections.abc import Iterable
from typing import Protocol

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.compact.bucket import CompactBucket
from ingestd.paimon.table.write.commit_message import CommitMessage


class CompactPlan(Protocol):
    """What is to be compacted in one bucket at once, and why."""

    @property
    def bucket(self) -> CompactBucket:
        """Return the bucket as it was when it was planned."""
        ...

    @property
    def inputs(self) -> tuple[DataFileMeta, ...]:
        """Return the files concerned."""
        ...

    @property
    def reason(self) -> str:
        """Return the name of the trigger."""
        ...

    def run(self) -> tuple[CommitMessage, tuple[DataFileMeta, ...]]:
        """Compact; the message for the committer, and the files that were made for it."""
        ...


def first_plans(plans: Iterable[CompactPlan], most_bytes: int) -> list[CompactPlan]:
    """Plans with the most files, until their inputs are this many bytes; at least one."""
    chosen: list[CompactPlan] = []
    size = 0
    for plan in sorted(plans, key=lambda plan: -len(plan.inputs)):
        if size >= most_bytes:
            break
        chosen.append(plan)
        size += sum(file.file_size for file in plan.inputs)
    return chosen

"""The handling of rejected records, by the stage at which they failed.

A rejected record becomes a dead letter, or it stops the pipeline before the batch is committed, or
it is dropped and only counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ingestd.cdc.base import RejectedRecord
from ingestd.errors import PolicyStopError
from ingestd.ingest.values.counts import Counts

ErrorAction = Literal["dead-letter", "fail", "drop"]
STAGES: Mapping[str, str] = {
    "decode": "the message cannot be decoded",
    "route": "no target, where `routing.unmatched` makes a dead letter of it, or an invalid name",
    "key": "the message key, or a primary key column",
    "cast": "a value that its column cannot hold, or an invalid argument of a computed column",
    "schema": "an invalid schema, or a change that `schema.on-incompatible-schema` refuses",
    "merge": "a change that the merge engine of the table does not support",
}
"""The stages at which a record can be rejected, with the possible causes."""
CLAIM_STAGES = frozenset({"route", "schema"})
"""The stages that reject records because of their source table or schema, not their values."""


UnreadableAction = Literal["fail", "dead-letter"]


@dataclass(frozen=True, slots=True)
class UnreadablePolicy:
    """What happens to an offset that `most_tries` reads could not fetch; None retries forever.

    "fail" stops the pipeline. "dead-letter" writes a dead letter for the unreadable range and
    continues after it, once the tables contain all records before it.
    """

    most_tries: int | None = None
    action: UnreadableAction = "fail"


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What happens to records that are rejected at each stage: "dead-letter", "drop" or "fail".

    A stage that is not in `actions` makes dead letters; "fail" stops the pipeline.
    """

    actions: Mapping[str, ErrorAction] = field(default_factory=dict)

    def becomes_dead_letter(self, record: RejectedRecord, counts: Counts) -> bool:
        """Return whether a rejected record becomes a dead letter; count it if it is dropped.

        A dropped record is added to `counts.dropped`. Raises PolicyStopError, which names the
        record, if its stage stops the pipeline.
        """
        action = self.actions.get(record.stage, "dead-letter")
        if action == "fail":
            raise PolicyStopError(
                f"{record.topic}/{record.partition} at offset {record.offset} ({record.stage}, "
                f"{record.reason}): {record.message}; nothing of the batch is committed; "
                f"correct the source or the configuration, or set errors.{record.stage} to "
                "dead-letter"
            )
        if action == "drop":
            counts.dropped[record.stage, record.reason] += 1
        return action == "dead-letter"

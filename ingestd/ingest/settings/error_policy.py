"""What becomes of records that cannot be used, by the stage at which they failed.

A dead letter keeps the record. Or the pipeline stops, and nothing of the batch is committed; or the
record is dropped, which is counted and nothing more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ingestd.cdc.base import Rejected
from ingestd.errors import PolicyStopError
from ingestd.ingest.values.counts import Counts

ErrorAction = Literal["dead-letter", "fail", "drop"]
STAGES: Mapping[str, str] = {
    "decode": "the message cannot be read",
    "route": "no target, where `routing.unmatched` makes a dead letter of it, or no fit name",
    "key": "the message key, or a primary key column",
    "cast": "a value that its column does not take, or that a computed column cannot be made from",
    "schema": "a schema that cannot be, or a change of one that `schema.on-refused-change` refuses",
    "merge": "a change that the merge engine of the table does not take",
}
"""Stages at which records fail, and what is wrong with them there."""
CLAIM_STAGES = frozenset({"route", "schema"})
"""Stages at which a record fails that claims a table, a schema or a name that it cannot have."""


UnreadableAction = Literal["fail", "dead-letter"]


@dataclass(frozen=True, slots=True)
class UnreadablePolicy:
    """What happens to offsets that could not be read `most_tries` times (None: tried for ever)."""

    most_tries: int | None = None
    action: UnreadableAction = "fail"


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """What to do by stage; a stage that is not among the `actions` makes dead letters."""

    actions: Mapping[str, ErrorAction] = field(default_factory=dict)

    def keeps(self, one: Rejected, counts: Counts) -> bool:
        """Whether a record becomes a dead letter; a dropped one is counted instead.

        PolicyStopError names the record if the pipeline stops at its stage.
        """
        action = self.actions.get(one.stage, "dead-letter")
        if action == "fail":
            raise PolicyStopError(
                f"{one.topic}/{one.partition} at offset {one.offset} ({one.stage}, {one.reason}): "
                f"{one.message}; nothing of the batch is committed; mend the source or the "
                f"configuration, or let errors.{one.stage} be dead-letter"
            )
        if action == "drop":
            counts.dropped[one.stage, one.reason] += 1
        return action == "dead-letter"

"""The section `errors`: what happens to rejected records, and limits on them."""

from typing import Any, Self

from pydantic import Field, model_validator

from ingestd.config.section import Section
from ingestd.config.values import TableName
from ingestd.ingest.settings.error_policy import (
    STAGES,
    ErrorAction,
    ErrorPolicy,
    UnreadableAction,
    UnreadablePolicy,
)
from ingestd.ingest.settings.pipeline_settings import DEAD_LETTER_TABLE
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.ingest.settings.topic_trial import TrialLimits


def _stage(name: str) -> Any:  # noqa: ANN401  (what stands for a field of any type)
    text = f"{STAGES[name]}: `dead-letter`, `fail` stops the pipeline, `drop` only counts."
    return Field(
        default="dead-letter",
        alias=name,
        description=f"What happens to records that fail at the stage `{name}`: {text}",
    )


class ErrorsSection(Section):
    """What happens to rejected records."""

    dead_letter_table: TableName = Field(
        default=DEAD_LETTER_TABLE,
        description="Append table of the warehouse's database that keeps rejected records.",
    )
    dead_letter_topic: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]+$",
        max_length=249,
        description="Kafka topic that gets rejected records in place of the table, in the cluster "
        "they came from, at least once: headers say where each was.",
    )
    max_rejected_records: int | None = Field(
        default=None,
        ge=0,
        description="More rejected records in one run stop the pipeline (exit code 5) before "
        "anything of the batch is committed; without it any number is taken.",
    )
    max_rejected_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="A larger share of rejected records in the newest `rejected-window` stops the "
        "pipeline (exit code 5) before anything of the batch is committed.",
    )
    set_aside_records: int = Field(
        default=100,
        ge=0,
        description="A topic is set aside if nearly all of its first records in a run are "
        "rejected, at least so many: it is read no more, stays where it was, and others go on. 0 "
        "never sets a topic aside.",
    )
    set_aside_ratio: float = Field(
        default=0.95, gt=0, le=1, description="Share of rejected records that is nearly all."
    )
    max_unreadable_tries: int | None = Field(
        default=None,
        ge=1,
        description="A topic partition that gives no record although its broker answers is set "
        "aside, and tried again after a minute, then after twice as long each time, up to an hour. "
        "After so many tries `on-unreadable` decides; without it, it waits.",
    )
    on_unreadable: UnreadableAction = Field(
        default="fail",
        description="What happens after `max-unreadable-tries`: `fail` stops the pipeline (exit "
        "code 5); `dead-letter` names the offsets that cannot be read in a dead letter "
        "(`unreadable`) and reads on after them.",
    )
    rejected_window: int = Field(
        default=10_000,
        ge=1,
        description="Records that `max-rejected-ratio` is a share of: the newest whole batches "
        "that have as many. A run that has read fewer is judged as if it had.",
    )

    decode: ErrorAction = _stage("decode")
    route: ErrorAction = _stage("route")
    key: ErrorAction = _stage("key")
    cast: ErrorAction = _stage("cast")
    schema_: ErrorAction = _stage("schema")
    merge: ErrorAction = _stage("merge")

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if self.on_unreadable == "dead-letter" and self.max_unreadable_tries is None:
            raise ValueError(
                "on-unreadable: dead-letter is decided after max-unreadable-tries, which is not set"
            )
        return self

    @property
    def unreadable_policy(self) -> UnreadablePolicy:
        """Return the policy for topic partitions that cannot be read."""
        return UnreadablePolicy(self.max_unreadable_tries, self.on_unreadable)

    @property
    def error_policy(self) -> ErrorPolicy:
        """Return the action by stage."""
        given = self.model_dump(by_alias=True, include={*STAGES, "schema_"})
        return ErrorPolicy({name: one for name, one in given.items() if one != "dead-letter"})

    @property
    def trial_limits(self) -> TrialLimits:
        """Return the limits above which a topic is set aside."""
        return TrialLimits(self.set_aside_records, self.set_aside_ratio)

    @property
    def rejection_limits(self) -> RejectionLimits:
        """Return the limits on rejected records."""
        return RejectionLimits(
            self.max_rejected_records, self.max_rejected_ratio, self.rejected_window
        )

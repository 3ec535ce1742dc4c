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
from ingestd.ingest.settings.wrong_format import WrongFormatThreshold


def _stage(name: str) -> Any:  # noqa: ANN401  (a field of any type)
    return Field(
        default="dead-letter",
        alias=name,
        description=f"What happens to records that fail at the stage `{name}` ({STAGES[name]}): "
        "`dead-letter` makes dead letters of them, `fail` stops the pipeline, `drop` only counts "
        "them.",
    )


class ErrorsSection(Section):
    """Settings for rejected records: where they are stored, their limits, and actions by stage."""

    dead_letter_table: TableName = Field(
        default=DEAD_LETTER_TABLE,
        description="Append table in the warehouse's database that stores rejected records.",
    )
    dead_letter_topic: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]+$",
        max_length=249,
        description="Kafka topic for rejected records instead of the table, in the cluster of "
        "their source; delivery is at least once, and headers contain the origin of a record.",
    )
    max_rejected_records: int | None = Field(
        default=None,
        ge=0,
        description="Maximum number of rejected records in one run. A higher number stops the "
        "pipeline (exit code 5) before anything of the batch is committed; by default "
        "there is no limit.",
    )
    max_rejected_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Maximum share of rejected records in the last `rejected-window` records. "
        "A higher share stops the pipeline (exit code 5) before anything of the batch is "
        "committed.",
    )
    set_aside_records: int = Field(
        default=100,
        ge=0,
        description="A topic is set aside if at least this many of its first records in a run, "
        "and nearly all of them, are rejected: it is not read further, its progress "
        "stays, and other topics continue. 0 turns it off.",
    )
    set_aside_ratio: float = Field(
        default=0.95,
        gt=0,
        le=1,
        description="Minimum share of rejected records for which a topic is set aside.",
    )
    max_unreadable_tries: int | None = Field(
        default=None,
        ge=1,
        description="A topic partition that returns no record although its broker responds is set "
        "aside and retried after a minute, then after doubling waits of up to an "
        "hour. After this many tries `on-unreadable` applies; by default it is "
        "retried forever.",
    )
    on_unreadable: UnreadableAction = Field(
        default="fail",
        description="What happens after `max-unreadable-tries`: `fail` stops the pipeline (exit "
        "code 5); `dead-letter` records the unreadable offsets in a dead letter "
        "(`unreadable`) and continues after them.",
    )
    rejected_window: int = Field(
        default=10_000,
        ge=1,
        description="Number of records that `max-rejected-ratio` is a share of, counted in whole "
        "batches. A run that has read fewer is judged as if it had read this many.",
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
                "on-unreadable: dead-letter needs max-unreadable-tries, which is not set"
            )
        return self

    @property
    def unreadable_policy(self) -> UnreadablePolicy:
        """The policy for topic partitions that cannot be read."""
        return UnreadablePolicy(self.max_unreadable_tries, self.on_unreadable)

    @property
    def error_policy(self) -> ErrorPolicy:
        """The actions that differ from `dead-letter`, by stage."""
        actions = self.model_dump(by_alias=True, include={*STAGES, "schema_"})
        return ErrorPolicy(
            {name: action for name, action in actions.items() if action != "dead-letter"}
        )

    @property
    def wrong_format_threshold(self) -> WrongFormatThreshold:
        """The number and share of rejected records from which a topic is set aside."""
        return WrongFormatThreshold(self.set_aside_records, self.set_aside_ratio)

    @property
    def rejection_limits(self) -> RejectionLimits:
        """The limits on rejected records above which the pipeline stops."""
        return RejectionLimits(
            self.max_rejected_records, self.max_rejected_ratio, self.rejected_window
        )

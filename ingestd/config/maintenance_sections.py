"""The sections `compaction` and `expiry`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ingestd.config.section import Section
from ingestd.config.values import Duration


def _mode(value: object) -> object:
    """Return `off` for false: YAML 1.1 parsers, such as Helm's, read a plain `off` as a boolean."""
    return "off" if str(value).lower() == "false" else value


Mode = Annotated[Literal["background", "inline", "off"], BeforeValidator(_mode)]


class CompactionSection(Section):
    """Where tables are compacted, and how long ingest waits for it.

    Options of a table (`num-sorted-run.compaction-trigger`) decide when it is compacted; tables
    with `write-only` are skipped.
    """

    mode: Mode = Field(
        default="background",
        description="`background`: processes beside the stream compact what is due. `inline`: "
        "each batch also waits for the compactions that it triggers. `off`: tables "
        "are compacted by something else, such as `ingestd compact` on a schedule. "
        "Tables with the option `write-only` are never compacted.",
    )
    inline_budget: Duration = Field(
        default=10.0,
        description="Maximum wait of a batch in the mode `inline`; unfinished compactions "
        "continue in the background.",
    )
    processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Number of tables that are compacted or expired at a time, each by a process "
        "of low priority.",
    )
    max_throttle: Duration = Field(
        default=30.0,
        description="Maximum wait of ingest between two batches while a bucket has more sorted "
        "runs than the table's `num-sorted-run.stop-trigger`; `0s` never waits.",
    )


class ExpirySection(Section):
    """Whether snapshots, changelogs, partitions and tags expire in the background."""

    enabled: bool = Field(
        default=True,
        description="Expire snapshots, changelogs, partitions and tags, and create automatic "
        "tags, as the options of each table say; not for tables with `write-only`.",
    )
    interval: Duration = Field(
        default=60.0,
        gt=0,
        description="How often a table is checked; up to an hour while nothing is committed to it.",
    )

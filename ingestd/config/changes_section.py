"""What tables make of changes, and in which order: a part of their sections."""

from pydantic import Field

from ingestd.config.section import Section
from ingestd.ingest.settings.context import AppendChanges
from ingestd.ingest.settings.ordering import Ordering
from ingestd.ingest.settings.truncate_policy import OnTruncate, RefusedTruncate


class ChangesSection(Section):
    """Truncates, updates and deletes without a key, and the order of rows, for all tables."""

    on_truncate: OnTruncate = Field(
        default="apply",
        description="What happens when the source empties a table: `apply` empties the target too, "
        "`ignore` keeps its rows.",
    )
    on_refused_truncate: RefusedTruncate = Field(
        default="dead-letter",
        description="What happens to a truncate of which nobody can tell which rows came before "
        "it: `dead-letter` puts it aside, `ignore` leaves it out, `fail` stops the pipeline.",
    )
    append_changes: AppendChanges = Field(
        default="reject",
        description="What a table without a key makes of updates and deletes: `reject` makes dead "
        "letters of them, `latest-only` appends the row behind each change and leaves deletes out, "
        "`audit` appends every change with its kind (+I, -U, +U, -D) in the column `row_kind`.",
    )
    ordering: Ordering = Field(
        default="arrival",
        description="Which of two rows of a key is newer: `arrival`, the one that arrived later in "
        "its topic partition; or `source-position`, the later one in the log of its database, "
        "which is kept in the column `source_position`, the table's `sequence.field`. It is "
        "settled when the table is created.",
    )


class OwnChangesSection(Section):
    """The same for one table."""

    on_truncate: OnTruncate | None = Field(default=None, description="As in `defaults`.")
    on_refused_truncate: RefusedTruncate | None = Field(
        default=None, description="As in `defaults`."
    )
    append_changes: AppendChanges | None = Field(default=None, description="As in `defaults`.")
    ordering: Ordering | None = Field(default=None, description="As in `defaults`.")

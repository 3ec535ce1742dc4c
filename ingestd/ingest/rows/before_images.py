"""Whether rows before changes are needed: where a changelog is to hold every change as it came.

A table with the changelog producer `input` tells its readers what was there before an update or a
delete, which only the source knows. All formats of the batch's sources are then asked for it;
other tables do without what they have no use for.
"""

from ingestd.cdc.base import ChangeBatch
from ingestd.ingest.settings.context import BatchContext, TableSettings
from ingestd.paimon.merge.row_kinds import retraction_refusal
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import INPUT, writes_input
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def wants_images(context: BatchContext) -> bool:
    """Whether a table of the batch, or one that it may create, needs the rows before changes.

    For a changelog of what came, or because its key is computed from columns beside the key, or it
    has none and keeps every change.
    """
    if announced(context) or context.computes_keys():
        return True
    if any(
        one.keyless_table_mode == "audit" for one in (context.defaults, *context.settings.values())
    ):
        return True
    return any(writes_input(one.table.schema) for one in context.tables.values())


def announced(context: BatchContext) -> bool:
    """Whether the configuration itself wants a changelog of what comes, for whatever table."""
    return any(_is_input(one) for one in (context.defaults, *context.settings.values()))


def as_wanted(batch: ChangeBatch, table: FileStoreTable) -> ChangeBatch:
    """The changes that a table takes: without the rows before updates, unless it tells them.

    It cannot where row kinds are in a column, or where no row can be taken back: then an update
    is the row behind it alone, as it is without a changelog.
    """
    if tells_changes(table):
        return batch
    return batch.filter(batch.row_kind != RowKind.UPDATE_BEFORE)


def tells_changes(table: FileStoreTable) -> bool:
    """Whether the changelog of a table takes rows before updates."""
    rules = table.merge_rules
    tells = writes_input(table.schema) and rules.rowkind_field is None
    return tells and retraction_refusal(rules) is None


def _is_input(settings: TableSettings) -> bool:
    return honoured.CHANGELOG_PRODUCER.of(settings.options) == INPUT

"""Decide whether tables need the rows before changes, for a changelog or for computed keys.

A table with the changelog producer `input` shows its readers the row before an update or a delete,
which only the source knows. All formats of the batch's sources then decode these rows; other
tables drop the ones they do not need.
"""

from ingestd.cdc.base import ChangeBatch
from ingestd.ingest.settings.context import BatchContext, TableSettings
from ingestd.paimon.merge.row_kinds import retraction_refusal
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import INPUT, writes_input
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def wants_images(context: BatchContext) -> bool:
    """Return whether a table of the batch, or one it may create, needs rows before changes.

    Needed for the changelog producer `input`, for a key computed from columns outside the message
    key, and for a table without a key that keeps every change.
    """
    if announced(context) or context.computes_keys():
        return True
    if any(
        one.keyless_table_mode == "audit" for one in (context.defaults, *context.settings.values())
    ):
        return True
    return any(writes_input(table.table.schema) for table in context.tables.values())


def announced(context: BatchContext) -> bool:
    """Return whether the configuration sets the changelog producer `input` for any table."""
    return any(_is_input(one) for one in (context.defaults, *context.settings.values()))


def as_wanted(batch: ChangeBatch, table: FileStoreTable) -> ChangeBatch:
    """Return the changes for a table, without rows before updates if its changelog has none.

    It has none if row kinds are in a column, or if rows cannot be retracted: then an update is only
    the row after it, as without a changelog.
    """
    if tells_changes(table):
        return batch
    return batch.filter(batch.row_kind != RowKind.UPDATE_BEFORE)


def tells_changes(table: FileStoreTable) -> bool:
    """Return whether the changelog of a table contains rows before updates."""
    rules = table.merge_rules
    tells = writes_input(table.schema) and rules.rowkind_field is None
    return tells and retraction_refusal(rules) is None


def _is_input(settings: TableSettings) -> bool:
    return honoured.CHANGELOG_PRODUCER.of(settings.options) == INPUT

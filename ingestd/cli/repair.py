"""`ingestd repair`: write the Iceberg metadata of a table that is missing or wrong."""

from ingestd.cli.groups import print_result
from ingestd.cli.interrupts import UNCHANGED
from ingestd.cli.output import AsJson
from ingestd.cli.progress_line import working
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.iceberg.iceberg_sync import repair_iceberg
from ingestd.paimon.iceberg.metadata_writer import SyncResult
from ingestd.paimon.spec import iceberg_options
from ingestd.paimon.spec.iceberg_rules import iceberg_settings
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def repair(warehouse: Warehouse, table: TableName, as_json: AsJson = False) -> None:
    """Bring the Iceberg metadata of a table up to date, after a failure or a killed process.

    The next commit does the same. In addition, this command reads all manifests: if files are lost,
    damaged, or do not list what the newest snapshot contains, the metadata is written again with
    that snapshot alone. Writers may continue. `ingestd remove-orphans` deletes files that a killed
    process has left.

    **Examples**

    ingestd repair /lake shop.orders

    ingestd repair /lake shop.orders --json
    """
    opened = open_table(warehouse, table)
    _refuse_without_metadata(opened)
    with working("repairing Iceberg metadata of", opened, left=UNCHANGED) as watched:
        result = repair_iceberg(watched)
    document = {
        "table": opened.name,
        "before": result.before,
        "after": result.after,
        "restarted": result.restarted,
    }
    print_result(f"{opened.name}: {_text(result)}", document, as_json=as_json, dry_run=False)


def _refuse_without_metadata(table: FileStoreTable) -> None:
    """Raise ConfigError if a table has no Iceberg metadata."""
    if table.branch != MAIN_BRANCH:
        raise ConfigError(
            f"{table.name} is a branch: only the main branch of a table has Iceberg metadata"
        )
    if iceberg_settings(table.schema.options) is None:
        raise ConfigError(
            f"table {table.name} has no Iceberg metadata: option "
            f"'{iceberg_options.ICEBERG_STORAGE.name}' is not set"
        )


def _text(result: SyncResult) -> str:
    if result.after is None:
        return "nothing was written, the table has no snapshot."
    shows = f"the Iceberg metadata shows snapshot {result.after}"
    if result.restarted:
        return f"{shows}, and was written again without older ones."
    if result.before == result.after:
        return f"nothing was missing, {shows}."
    return f"{shows}; before, it showed snapshot {result.before}."

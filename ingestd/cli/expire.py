"""`ingestd expire`: expire snapshots, changelogs, partitions and tags."""

from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.groups import DryRun, group, print_result, table_now_ms
from ingestd.cli.output import AsJson, print_table
from ingestd.cli.progress_line import working
from ingestd.cli.table_arguments import TableName, Warehouse, open_table
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.retention.auto_tags import tags_to_expire
from ingestd.paimon.table.retention.expire_changelogs import (
    expire_changelogs,
    plan_changelog_expiry,
)
from ingestd.paimon.table.retention.expire_partitions import EXPIRATION_TIME, expire_partitions
from ingestd.paimon.table.retention.expire_plan import ExpireSettings, expire_settings
from ingestd.paimon.table.retention.expire_snapshots import (
    Expiry,
    expire_snapshots,
    plan_snapshot_expiry,
)
from ingestd.paimon.table.retention.tags import delete_tags, plan_tag_deletion
from ingestd.wording import counted

EXPIRED = (
    "What has expired stays expired; files that nothing needs any more may be left for "
    "`ingestd remove-orphans`. Run the same command again for the rest."
)
_Least: TypeAlias = Annotated[
    int | None, typer.Option("--retain-min", min=1, help="Keep at least this many.")
]
_Most: TypeAlias = Annotated[
    int | None, typer.Option("--retain-max", min=1, help="Keep at most this many.")
]
_Age: TypeAlias = Annotated[
    str | None,
    typer.Option("--time-retained", help="Keep what is younger than this, as in `12 h`."),
]
_Limit: TypeAlias = Annotated[
    int | None, typer.Option("--limit", min=1, help="Expire at most this many.")
]

expire = group(
    "expire",
    "Expire snapshots, changelogs, partitions and tags as the table's options specify.",
    "ingestd expire snapshots /lake shop.orders --dry-run",
    "ingestd expire snapshots /lake shop.orders --retain-min 10 --time-retained '1 d'",
    "ingestd expire partitions /lake shop.orders --expiration-time '90 d'",
)


@expire.command("snapshots")
def snapshots(
    warehouse: Warehouse,
    table: TableName,
    retain_min: _Least = None,
    retain_max: _Most = None,
    time_retained: _Age = None,
    limit: _Limit = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Expire snapshots, the oldest first, and delete the files that nothing else needs.

    Defaults are the options of the table: `snapshot.num-retained.min` (10) and `.max`,
    `snapshot.time-retained` (1 h), `snapshot.expire.limit` (50). What consumers, tags and branches
    need is kept, and so is the newest snapshot of each live commit user.

    **Examples**

    ingestd expire snapshots /lake shop.orders --dry-run

    ingestd expire snapshots /lake shop.orders --retain-max 5 --retain-min 5
    """
    opened = open_table(warehouse, table)
    settings = _settings(opened, "snapshot", retain_min, retain_max, time_retained, limit)
    run = plan_snapshot_expiry if dry_run else expire_snapshots
    _expire(opened, "snapshots", run, settings, dry_run=dry_run, as_json=as_json)


@expire.command("changelogs")
def changelogs(
    warehouse: Warehouse,
    table: TableName,
    retain_min: _Least = None,
    retain_max: _Most = None,
    time_retained: _Age = None,
    limit: _Limit = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Expire changelogs that have outlived their snapshots.

    A table has such changelogs if its option `changelog.num-retained.min`, `.max` or
    `changelog.time-retained` is larger than the same option of its snapshots.

    **Examples**

    ingestd expire changelogs /lake shop.orders --dry-run

    ingestd expire changelogs /lake shop.orders --time-retained '7 d'
    """
    opened = open_table(warehouse, table)
    settings = _settings(opened, "changelog", retain_min, retain_max, time_retained, limit)
    run = plan_changelog_expiry if dry_run else expire_changelogs
    _expire(opened, "changelogs", run, settings, dry_run=dry_run, as_json=as_json)


@expire.command("partitions")
def partitions(
    warehouse: Warehouse,
    table: TableName,
    expiration_time: Annotated[
        str | None, typer.Option("--expiration-time", help="Maximum age, as in `90 d`.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Drop partitions that are too old, by the time in their values or by their last change.

    The table's option `partition.expiration-strategy` selects the time: `values-time`, with
    `partition.timestamp-pattern` and `partition.timestamp-formatter`, or `update-time`.

    **Examples**

    ingestd expire partitions /lake shop.orders --dry-run

    ingestd expire partitions /lake shop.orders --expiration-time '90 d'
    """
    opened = open_table(warehouse, table)
    options = dict(opened.schema.options)
    if expiration_time is not None:
        options[EXPIRATION_TIME] = expiration_time
    with working("expiring partitions of", opened, dry_run=dry_run) as watched:
        expired = expire_partitions(watched, options, table_now_ms(watched), dry_run=dry_run)
    rows = [
        {
            "partition": partition_name(opened, partition.partition),
            "files": partition.files,
            "rows": partition.rows,
            "bytes": partition.bytes,
        }
        for partition in expired.partitions
    ]
    document = {"table": table, "partitions": rows, "snapshots": list(expired.snapshots)}
    text = f"{table}: {counted(len(rows), 'partition')} expired{_why_none(opened, options)}."
    print_result(text, document, as_json=as_json, dry_run=dry_run)
    if not as_json and rows:
        print_table(rows, ("partition", "files", "rows", "bytes"), none="")


def _why_none(table: FileStoreTable, options: Mapping[str, str]) -> str:
    """Return why no partition of a table can expire, or "" if some can."""
    if not table.schema.partition_keys:
        return ": the table has no partitions"
    if EXPIRATION_TIME not in options:
        return f": the table has no option '{EXPIRATION_TIME}', and --expiration-time is not given"
    return ""


@expire.command("tags")
def tags(
    warehouse: Warehouse, table: TableName, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Delete the tags whose retention time is over, and the files that only these tags kept.

    **Examples**

    ingestd expire tags /lake shop.orders --dry-run

    ingestd expire tags /lake shop.orders --json
    """
    opened = open_table(warehouse, table)
    with working("expiring tags of", opened, left=EXPIRED, dry_run=dry_run) as watched:
        over = tags_to_expire(watched, watched.schema.options, table_now_ms(watched))
        files = (plan_tag_deletion if dry_run else delete_tags)(watched, *over)
    names = f": {', '.join(over)}; {counted(len(files), 'file')} deleted" if over else ""
    text = f"{table}: {counted(len(over), 'tag')} expired{names}."
    document = {"table": table, "tags": over, "deleted_files": files}
    print_result(text, document, as_json=as_json, dry_run=dry_run)


def _settings(
    table: FileStoreTable,
    what: str,
    retain_min: int | None,
    retain_max: int | None,
    time_retained: str | None,
    limit: int | None,
) -> ExpireSettings:
    """Return the expiry settings of a table, overridden by the command line.

    `what` is "snapshot" or "changelog".
    """
    overrides = {
        f"{what}.num-retained.min": retain_min,
        f"{what}.num-retained.max": retain_max,
        f"{what}.time-retained": time_retained,
        honoured.EXPIRE_LIMIT.name: limit,
    }
    options = {name: str(value) for name, value in overrides.items() if value is not None}
    if retain_max is not None and retain_min is None:
        # The minimum of the table may be larger than the requested maximum.
        options[f"{what}.num-retained.min"] = "1"
    return expire_settings({**table.schema.options, **options})


def _expire(
    table: FileStoreTable,
    what: str,
    run: Callable[[FileStoreTable, ExpireSettings, int], Expiry],
    settings: ExpireSettings,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    with working(f"expiring {what} of", table, left=EXPIRED, dry_run=dry_run) as watched:
        expiry = run(watched, settings, table_now_ms(watched))
    document = {
        "table": table.name,
        what: list(expiry.ids),
        "first_kept": expiry.end,
        "kept_as_changelogs": list(expiry.kept_as_changelogs),
        "consumers": list(expiry.consumers),
        "deleted_files": list(expiry.files),
    }
    span = f" ({expiry.ids[0]} to {expiry.ids[-1]})" if expiry.ids else ""
    text = (
        f"{table.name}: {counted(len(expiry.ids), what.removesuffix('s'))} expired{span}, "
        f"{counted(len(expiry.files), 'file')} deleted."
    )
    print_result(text, document, as_json=as_json, dry_run=dry_run)

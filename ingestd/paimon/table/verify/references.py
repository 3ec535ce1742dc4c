"""Checking what else refers to a table's files: tags, branches, consumers, statistics.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-tags/

Files are looked for, not looked into.
"""

from ingestd.errors import ConfigError
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_names,
    tagged_snapshot,
)
from ingestd.paimon.table.retention.consumers import consumers
from ingestd.paimon.table.retention.referenced_files import files_of
from ingestd.paimon.table.system.statistics import read_statistics
from ingestd.paimon.table.verify.findings import VerifyFindings


def check_references(table: FileStoreTable, findings: VerifyFindings) -> None:
    """Check the tags and consumers of a branch, and from the main branch the other branches."""
    there: set[str] = set()
    for name in tag_names(table.io, table.paths):
        with findings.reading(f"tag-{name}"):
            _look_for(table, tagged_snapshot(table, name), f"tag-{name}", there, findings)
    with findings.reading("consumer"):
        consumers(table)
    with findings.reading("statistics"):
        newest = latest_snapshot(table.io, table.paths)
        if newest is not None:
            read_statistics(table, newest)
    if table.branch == MAIN_BRANCH:
        for name in branch_names(table.io, table.paths):
            _check_branch(table, name, there, findings)


def _check_branch(
    table: FileStoreTable, name: str, there: set[str], findings: VerifyFindings
) -> None:
    where = f"branch-{name}"
    try:
        line = on_branch(table, name)
    except ConfigError:
        findings.error("branch", where, "has no schema")
        return
    with findings.reading(where):
        newest = latest_snapshot(line.io, line.paths)
        if newest is not None:
            _look_for(line, newest, where, there, findings)


def _look_for(
    table: FileStoreTable, snapshot: Snapshot, where: str, there: set[str], findings: VerifyFindings
) -> None:
    """Note the files of a snapshot that are missing; `there` has those that were found before."""
    for path in sorted(files_of(table, snapshot) - there):
        if table.io.exists(path):
            there.add(path)
        else:
            findings.error("missing-file", where, f"{path} does not exist")

"""The system table `statistics`, the results of ANALYZE.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#statistic-table
"""

import json

from ingestd.errors import FormatError
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_statistics import TableStatistics, parse_statistics
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.system.history_tables import Cells, columns

STATISTICS = columns(
    ("snapshot_id", "BIGINT NOT NULL"), ("schema_id", "BIGINT NOT NULL"),
    ("mergedRecordCount", "BIGINT"), ("mergedRecordSize", "BIGINT"), ("colstat", "STRING"),
)  # fmt: skip


def read_statistics(table: FileStoreTable, snapshot: Snapshot) -> TableStatistics | None:
    """Return the statistics that a snapshot refers to, or None.

    Raises FormatError if their file is missing or damaged.
    """
    if snapshot.statistics is None:
        return None
    path = table.paths.statistics(snapshot.statistics)
    try:
        data = table.io.read_bytes(path)
    except FileNotFoundError as error:
        raise FormatError(f"statistics file {path} of snapshot {snapshot.id} is missing") from error
    return parse_statistics(data, path)


def statistics_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the single row of `statistics`, or no row."""
    table_statistics = None if snapshot is None else read_statistics(table, snapshot)
    if table_statistics is None:
        return []
    figures = table_statistics.document()["colStats"]
    # Exactly as Java prints it.
    text = json.dumps(figures, ensure_ascii=False, indent=2, separators=(",", " : "))
    return [
        (
            table_statistics.snapshot_id,
            table_statistics.schema_id,
            table_statistics.merged_record_count,
            table_statistics.merged_record_size,
            text if figures else "{ }",
        )
    ]

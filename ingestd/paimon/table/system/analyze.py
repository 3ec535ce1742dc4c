"""Statistics of a whole table: computed from its merged rows, and kept with a snapshot.

The snapshot that points to the file is of kind ANALYZE and changes
nothing else; later snapshots go on pointing to it as long as the schema stays the same.
"""

import uuid
from collections.abc import Sequence

from ingestd.errors import ConfigError
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.spec.statistics import TableStatistics, encode_statistics
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.scan import live_files
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.system.column_figures import ColumnFigures
from ingestd.paimon.table.write.commit_message import ManifestCommittable


def analyze_table(
    table: FileStoreTable, columns: Sequence[str] | None = None, *, now_ms: int
) -> tuple[TableStatistics, CommitResult]:
    """Compute the statistics of the newest snapshot and commit them.

    `columns` are those to look at (None: all). Raises ConfigError for a table without snapshot
    or a column that it has not; else as reading and `commit`.
    """
    state = load_state(table)
    if state.snapshot is None:
        raise ConfigError(f"table {table.name} has no snapshot yet: there is nothing to analyze")
    statistics = compute_statistics(table, state.snapshot, columns)
    name = f"stat-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.statistics(name), encode_statistics(statistics))
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (), statistics=name)
    result = commit(table, str(uuid.uuid4()), committable, state=state, now_ms=now_ms)
    return statistics, result


def compute_statistics(
    table: FileStoreTable, snapshot: Snapshot, columns: Sequence[str] | None = None
) -> TableStatistics:
    """The statistics of a snapshot, in the columns that the table had then.

    The size is that of the files, less what merging takes away. ConfigError for an unknown
    column.
    """
    then = table.with_schema(table.schemas(snapshot.schema_id))
    names = [field.name for field in then.schema.fields] if columns is None else list(columns)
    unknown = [name for name in names if name not in {f.name for f in then.schema.fields}]
    if unknown:
        raise ConfigError(f"table {table.name} has no column {', '.join(unknown)}")
    figures = {name: ColumnFigures(then.schema.field(name)) for name in names}
    rows = 0
    # Rows have to be read even to be counted: merging decides how many there are.
    read = names or list(then.schema.primary_keys) or [then.schema.fields[0].name]
    for part in TableReader(then, read).rows(snapshot):
        rows += part.num_rows
        for name, one in figures.items():
            one.add(part.column(name))
    files = [entry.file for entry in live_files(then, snapshot)]
    stored = sum(file.row_count for file in files)
    size = sum(file.file_size for file in files)
    return TableStatistics(
        snapshot_id=snapshot.id,
        schema_id=snapshot.schema_id,
        merged_record_count=rows,
        merged_record_size=round(size * rows / stored) if stored else 0,
        columns=tuple(one.result() for one in figures.values()),
    )

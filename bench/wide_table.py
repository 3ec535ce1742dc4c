"""A table of few, wide rows in runs that overlap, in any file format."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, parse_type
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

_WORD = 1000


def make_wide_table(
    warehouse: Path, runs: int, rows: int, row_bytes: int, file_format: str
) -> FileStoreTable:
    """One bucket of this many runs, each of half of all keys; a text fills the rows up."""
    typed = [(name, parse_type(t)) for name, t in (("id", "BIGINT"), ("n", "BIGINT"))]
    typed.append(("note", parse_type("STRING")))
    options = {"bucket": "1", "write-only": "true", "file.format": file_format}
    schema = new_schema(typed, ["id"], [], options, 0)
    path, io = str(warehouse / "db.db" / "t"), LocalFileIO(sync=False)
    publish_schema(io, TablePaths(path), schema)
    table = FileStoreTable(path, schema, io, "db.t")
    random = np.random.default_rng(1)
    for run in range(runs):
        state = load_state(table)
        part = _rows(random, rows, row_bytes, state.max_sequence_number + 1)
        message = write_bucket(table, EMPTY_ROW, 0, part, new_name=data_file_names(table))
        commit(table, "bench", ManifestCommittable(run + 1, (message,)), state=state, now_ms=1)
    return table


def _rows(random: np.random.Generator, rows: int, row_bytes: int, sequence: int) -> pa.Table:
    dead_letters = random.integers(97, 123, (rows, _WORD), np.uint8)
    notes = [bytes(line).decode() * max(row_bytes // _WORD, 1) for line in dead_letters]
    return pa.table(
        {
            "id": pa.array(random.permutation(2 * rows)[:rows]),
            "n": pa.array(random.integers(0, 1000, rows)),
            "note": pa.array(notes),
            SEQUENCE_NUMBER: pa.array(np.arange(sequence, sequence + rows)),
            VALUE_KIND: pa.array(np.zeros(rows, np.int8)),
        }
    )

"""Compaction takes a bounded memory, however wide rows and however long runs are."""

from pathlib import Path

import pytest

from ingestd.paimon.table.read.table_read import read_table
from tests.property.compact_memory import (
    ROWS,
    RUN_BYTES,
    RUNS,
    growth_of_compaction,
    wide_table,
)
from tests.support.native_tables import open_native

TABLES = {
    "parquet": {"file.format": "parquet"},
    "orc": {"file.format": "orc"},
    "avro": {"file.format": "avro"},
    "changelog": {"changelog-producer": "full-compaction"},
}


@pytest.mark.parametrize("name", TABLES)
def test_runs_are_never_in_memory_as_a_whole(name: str, tmp_path: Path) -> None:
    wide_table(tmp_path, TABLES[name])
    grown = growth_of_compaction(tmp_path)
    # A reader that held all runs would take all their bytes and those of the result.
    assert grown < RUNS * RUN_BYTES * 9 // 10
    rows = read_table(open_native(tmp_path)).column("k").to_pylist()
    assert len(rows) == len({key * (run + 1) for run in range(RUNS) for key in range(ROWS)})

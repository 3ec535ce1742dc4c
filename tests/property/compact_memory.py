"""Compacts a table of wide rows in a process of its own and tells how much more memory that took.

table = wide_table(folder, {"file.format": "orc"})
grown = growth_of_compaction(folder)        # bytes
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.native_tables import NOW_MS, native_table, open_native, write

RUNS = 5
ROWS = 56
ROW_BYTES = 1 << 20
RUN_BYTES = ROWS * ROW_BYTES
"""What a run is in memory; on disk it is small, since its texts repeat themselves."""


def wide_table(folder: Path, options: Mapping[str, str]) -> FileStoreTable:
    """Runs that overlap, of rows that are of which a reader may hold a few."""
    columns = [("k", "BIGINT"), ("v", "BYTES")]
    given = {"bucket": "1", "num-sorted-run.compaction-trigger": "100", **options}
    table = native_table(folder, columns, keys=["k"], options=given)
    body = bytes(1000) * (ROW_BYTES // 1000)
    for run in range(RUNS):
        state = load_state(table)
        keys = np.arange(ROWS, dtype=np.int64) * (run + 1)
        rows = pa.table(
            {
                "k": pa.array(keys),
                "v": pa.array([b"%d %d" % (run, key) + body for key in keys], pa.binary()),
                SEQUENCE_NUMBER: pa.array(np.arange(ROWS) + state.max_sequence_number + 1),
                VALUE_KIND: pa.array(np.zeros(ROWS, np.int8)),
            }
        )
        committable = ManifestCommittable(run + 1, tuple(write(table, state, rows)))
        commit(table, "wide", committable, state=state, now_ms=NOW_MS)
    return table


def growth_of_compaction(folder: Path) -> int:
    """Bytes that a process has grown by while it compacted all of the table."""
    command = [sys.executable, "-m", "tests.property.compact_memory", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _memory(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def _main(folder: str) -> None:
    table = open_native(folder)
    # Forget the most that it was so far.
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    print(_memory("VmHWM") - before)


if __name__ == "__main__":
    _main(sys.argv[1])

from pathlib import Path

import pytest

from ingestd.paimon.spec.data_file import FileSource
from ingestd.paimon.table.compact.rolling_write import FileTarget
from ingestd.paimon.table.write.file_metadata import FileStatsCollector
from tests.support.native_tables import native_table, rows_table


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2), (3,)])
def test_the_parts_that_rows_come_in_do_not_show(cuts: tuple[int, ...], tmp_path: Path) -> None:
    columns = [("k", "INT"), ("v", "STRING")]
    table = native_table(tmp_path, columns, keys=["k"], options={"bucket": "1"})
    given = [{"k": k, "v": v, "_kind": kind} for k, v, kind in
             [(1, "b", 0), (4, None, 3), (5, "a", 0), (9, "c", 3)]]  # fmt: skip
    rows = rows_table(table.schema, given, 7)
    origin = FileTarget(table, (), 0, 2).origin
    whole, parts = FileStatsCollector(origin, 0), FileStatsCollector(origin, 0)
    whole.add(rows)
    for start, end in zip((0, *cuts), (*cuts, 4), strict=True):
        parts.add(rows.slice(start, end - start))
    found, expected = parts.meta("f", 10), whole.meta("f", 10)
    assert (found.min_key, found.max_key) == (expected.min_key, expected.max_key)
    assert (found.key_stats, found.value_stats) == (expected.key_stats, expected.value_stats)
    assert (found.min_sequence_number, found.max_sequence_number) == (7, 10)
    assert (found.row_count, found.delete_row_count, found.level) == (4, 2, 2)
    assert (found.file_source, found.file_size) == (FileSource.COMPACT, 10)

"""Parts are put together up to a limit, none is lost and none is cut."""

import pyarrow as pa
import pytest

from ingestd.paimon.table.rewrite.merged_stream import bounded_chunks


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [([], []), ([9], [9]), ([1, 1, 1], [2, 1]), ([1, 9, 1, 1], [1, 9, 2]), ([0, 2], [2])],
)
def test_parts_come_together_while_there_is_room(counts: list[int], wanted: list[int]) -> None:
    parts = [pa.table({"a": pa.array(range(n), pa.int64())}) for n in counts]
    found = list(bounded_chunks(iter(parts), 16))
    assert [part.num_rows for part in found] == wanted
    cells = [cell for part in found for cell in part.column("a").to_pylist()]
    assert cells == [cell for n in counts for cell in range(n)]

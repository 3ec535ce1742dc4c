import pytest

from ingestd.paimon.format.base import BatchSize


@pytest.mark.parametrize(
    ("row_bytes", "rows"), [(1, 50), (10, 10), (40, 2), (99, 1), (10**9, 1), (0, 50), (0.5, 50)]
)
def test_as_many_rows_as_fit_but_at_least_one(row_bytes: float, rows: int) -> None:
    assert BatchSize(100, 50).fitting(row_bytes) == rows

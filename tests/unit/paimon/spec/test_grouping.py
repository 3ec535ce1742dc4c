"""Groups of equal rows."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingestd.paimon.spec.grouping import group_rows, pair_order


def test_rows_of_equal_values_share_a_group_and_nulls_are_equal() -> None:
    rows = pa.table({"a": ["x", None, "x", None, "y"], "b": [1, 2, 1, 2, 1]})
    groups = group_rows(rows, ["a", "b"])
    assert groups.count == 3
    codes = groups.codes.tolist()
    assert codes[0] == codes[2]
    assert codes[1] == codes[3]
    assert len({codes[0], codes[1], codes[4]}) == 3
    assert [codes[i] for i in groups.first] == list(range(3))


def test_values_that_only_look_alike_together_differ() -> None:
    rows = pa.table({"a": ["x", "xy"], "b": ["yz", "z"]})
    assert group_rows(rows, ["a", "b"]).count == 2


def test_without_columns_all_rows_are_one_group() -> None:
    groups = group_rows(pa.table({"a": [1, 2]}), [])
    assert (groups.count, groups.codes.tolist()) == (1, [0, 0])
    assert groups.first.tolist() == [0]
    assert group_rows(pa.table({"a": pa.array([], pa.int64())}), []).count == 0


def test_chunks_share_their_groups() -> None:
    column = pa.chunked_array([["x", "y"], ["y", "z"], ["x"]])
    codes = group_rows(pa.table({"a": column}), ["a"]).codes.tolist()
    assert codes[0] == codes[4]
    assert codes[1] == codes[2]
    assert len(set(codes)) == 3


def test_many_columns_of_many_values_do_not_overflow() -> None:
    # Five digits to the base 65536 are more than 64 bits hold: the first would be lost.
    digits = list(range(1 << 16))
    columns = {f"c{i}": [*digits, 7] for i in range(5)}
    columns["c0"][-1] = 8
    rows = pa.table(columns)
    assert group_rows(rows, rows.column_names).count == rows.num_rows


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2))), st.booleans())
def test_places_are_those_of_a_stable_sort(pairs: list[tuple[int, int]], ordered: bool) -> None:
    rows = sorted(pairs) if ordered else pairs
    major = np.array([one for one, _ in rows], np.int64)
    minor = np.array([one for _, one in rows], np.int64)
    wanted = sorted(range(len(rows)), key=lambda index: rows[index])
    assert pair_order(major, minor).tolist() == wanted

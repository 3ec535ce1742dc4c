"""Keys of any kinds in any number stand as Python sorts them."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingestd.paimon.merge.key_order import is_key_sorted, sort_keys

TEXTS = st.one_of(
    st.binary(max_size=3),
    st.binary(max_size=20).map(lambda tail: b"common-" + tail),
    st.sampled_from([b"", b"\0", b"x" * 70]),
)
KINDS: dict[str, tuple[Any, Any]] = {
    "byte": (st.integers(-128, 127), pa.int8()),
    "long": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "few": (st.integers(0, 2), pa.int64()),
    "text": (TEXTS, pa.binary()),
    "flag": (st.booleans(), pa.bool_()),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], pa.Table]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    row = st.tuples(*(KINDS[kind][0] for kind in kinds))
    rows = draw(st.lists(row, min_size=1, max_size=40))
    rows += draw(st.lists(st.sampled_from(rows), max_size=20))
    columns = zip(*rows, strict=True)
    arrays = [pa.array(cells, KINDS[kind][1]) for kind, cells in zip(kinds, columns, strict=True)]
    return rows, pa.table(arrays, names=[f"k{n}" for n in range(len(kinds))])


@given(tables())
def test_keys_stand_in_their_order(given_table: tuple[list[tuple[Any, ...]], pa.Table]) -> None:
    rows, table = given_table
    keys = sort_keys(table, table.column_names)
    expected = sorted(range(len(rows)), key=rows.__getitem__)
    assert keys.order.tolist() == expected
    ordered = [rows[place] for place in expected]
    assert keys.first.tolist() == [
        index == 0 or ordered[index] != ordered[index - 1] for index in range(len(rows))
    ]
    unique = sorted(set(rows))
    assert is_key_sorted(table.take(keys.order[keys.first]), table.column_names)
    assert is_key_sorted(table, table.column_names) == (rows == unique)


@given(tables(), st.data())
def test_rows_of_one_key_stand_by_their_sequence_numbers(
    given_table: tuple[list[tuple[Any, ...]], pa.Table], data: st.DataObject
) -> None:
    rows, table = given_table
    drawn = st.lists(st.integers(0, 2**62), min_size=len(rows), max_size=len(rows))
    numbers = data.draw(drawn)
    keys = sort_keys(table, table.column_names, pa.array(numbers, pa.int64()).to_numpy())
    expected = sorted(range(len(rows)), key=lambda n: (rows[n], numbers[n]))
    assert keys.order.tolist() == expected

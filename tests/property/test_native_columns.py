"""What the native extension does for columns is what Arrow and numpy do."""

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.paimon.spec import row_selection, simple_stats
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.extension import native_columns
from ingestd.paimon.spec.row_selection import take_rows
from ingestd.paimon.spec.simple_stats import collect_stats
from ingestd.paimon.table.buckets import hash_index
from ingestd.paimon.table.buckets.hash_index import is_among

pytestmark = pytest.mark.skipif(native_columns() is None, reason="needs the native extension")

TEXTS = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.text("ab\0\x7fé", max_size=70),
    st.integers(0, 70).map("same beginning {}".format),
)
HASHES = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-9, 9), max_size=60)


@given(st.lists(TEXTS, min_size=1, max_size=40), st.data())
def test_rows_are_taken_as_arrow_takes_them(texts: list[str | None], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(texts)))
    parts = [texts[:cut], texts[cut:]] if data.draw(st.booleans()) else [texts]
    column = pa.chunked_array(parts, pa.string())
    table = pa.table({"text": column, "bytes": column.cast(pa.binary())})
    start = data.draw(st.integers(0, len(texts) - 1))
    rows = table.slice(start)
    places = np.array(data.draw(st.lists(st.integers(0, rows.num_rows - 1), max_size=60)), np.int64)
    taken = take_rows(rows, places)
    taken.validate(full=True)
    assert taken.equals(rows.take(places))
    with mock.patch.object(row_selection, "native_columns", return_value=None):
        assert take_rows(rows, places).equals(taken)


@given(st.lists(TEXTS, max_size=40), st.integers(0, 5), st.sampled_from(["full", "truncate(3)"]))
def test_bounds_of_texts_are_those_of_arrow(texts: list[str | None], start: int, mode: str) -> None:
    table = pa.table({"a": pa.array(texts, pa.string()).slice(start)})
    fields = [DataField(0, "a", parse_type("STRING"))]
    found = collect_stats(table, fields, lambda _: mode)
    with mock.patch.object(simple_stats, "native_columns", return_value=None):
        assert found == collect_stats(table, fields, lambda _: mode)


@given(HASHES, HASHES)
def test_hashes_are_found_as_numpy_finds_them(asked: list[int], known: list[int]) -> None:
    numbers, there = np.array(asked, np.int32), np.sort(np.array(known, np.int32))
    wanted = np.isin(numbers, there).tolist()
    assert is_among(np.sort(numbers), there).tolist() == np.isin(np.sort(numbers), there).tolist()
    assert is_among(numbers, there).tolist() == wanted
    with mock.patch.object(hash_index, "native_columns", return_value=None):
        assert is_among(numbers, there).tolist() == wanted

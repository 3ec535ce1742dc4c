"""Rows of a table by their places, with the extension and without."""

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.spec import row_selection
from ingestd.paimon.spec.row_selection import take_rows

ROWS = pa.table(
    {
        "id": pa.chunked_array([[1, 2], [3, None]], pa.int64()),
        "text": pa.chunked_array([["one", None], ["", "a text of more than thirty-two bytes"]]),
        "bytes": pa.chunked_array([[b"\xff\0", b"\xff"], [None, b""]], pa.binary()),
        "list": pa.chunked_array([[[1], []], [None, [2, 3]]], pa.list_(pa.int32())),
    }
)


def test_rows_come_in_the_order_asked_for() -> None:
    places = np.array([3, 0, 0, 2, 1], np.int64)
    taken = take_rows(ROWS, places)
    taken.validate(full=True)
    assert taken.equals(ROWS.take(places))
    assert take_rows(ROWS.slice(1, 2), np.array([1, 0])).equals(ROWS.take([2, 1]))


def test_no_rows_and_no_columns_are_taken_too() -> None:
    none = np.empty(0, np.int64)
    assert take_rows(ROWS, none).equals(ROWS.slice(0, 0))
    assert take_rows(ROWS.slice(0, 0), none).equals(ROWS.slice(0, 0))
    assert take_rows(ROWS.select([]), none).num_columns == 0


def test_metadata_and_nullability_stay() -> None:
    schema = pa.schema(
        [pa.field("a", pa.string(), nullable=False, metadata={"k": "v"})], {"m": "n"}
    )
    rows = pa.table([["x", "y"]], schema=schema)
    assert take_rows(rows, np.array([1])).schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize("place", [4, -1])
def test_an_index_after_the_end_is_refused(place: int) -> None:
    with pytest.raises(IndexError):
        take_rows(ROWS.select(["text"]), np.array([place]))


def test_without_the_extension_arrow_takes_them() -> None:
    places = np.array([2, 1], np.int64)
    with mock.patch.object(row_selection, "native_columns", return_value=None):
        assert take_rows(ROWS, places).equals(take_rows(ROWS, places))
        assert take_rows(ROWS, places).equals(ROWS.take(places))


def test_more_text_than_one_array_holds_is_left_to_arrow() -> None:
    native = mock.Mock()
    native.take_texts.side_effect = OverflowError
    with mock.patch.object(row_selection, "native_columns", return_value=native):
        taken = take_rows(ROWS, np.array([1, 0]))
    assert native.take_texts.call_count == 2
    assert taken.equals(ROWS.take([1, 0]))

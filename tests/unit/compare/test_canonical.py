"""Cells tell rows apart whatever is in them, and texts are shown as people read them."""

from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingestd.compare.canonical import canonical_texts, hash_of, joined_cells, row_cells, shown_text
from ingestd.paimon.spec.data_types import DataType, parse_type

ROWS = st.tuples(*[st.none() | st.text(alphabet="-:0123aü😀", max_size=6)] * 3)


@given(one=ROWS, other=ROWS)
def test_rows_have_the_same_cells_exactly_if_they_are_equal(one: tuple, other: tuple) -> None:
    columns = [pa.array(list(cells), pa.string()) for cells in zip(one, other, strict=True)]
    cells = row_cells(columns).to_pylist()
    assert (cells[0] == cells[1]) == (one == other)
    assert cells[0].encode() == joined_cells(one)


def test_a_hash_is_the_first_digits_of_sha_256() -> None:
    assert hash_of(b"abc") == 0xBA7816BF8F01CFE


def shown(values: list, arrow_type: pa.DataType, text: str | dict) -> list[str | None]:
    t: DataType = parse_type(text)
    texts = canonical_texts(pa.array(values, arrow_type), t).to_pylist()
    return [shown_text(text, t) for text in texts]


def test_canonical_texts_are_shown_as_people_read_them() -> None:
    assert shown([0.1, -0.0, None], pa.float64(), "DOUBLE") == ["0.1", "0.0", None]
    assert shown([0.1], pa.float32(), "FLOAT") == ["0.1"]
    assert shown([-1, 20_000], pa.date32(), "DATE") == ["1969-12-31", "2024-10-04"]
    moment = datetime(2026, 1, 31, 12, 0, 0, 5, UTC)
    assert shown([moment], pa.timestamp("us", "UTC"), "TIMESTAMP_LTZ(6)") == [
        "2026-01-31T12:00:00.000005Z"
    ]
    assert shown([moment], pa.timestamp("ms"), "TIMESTAMP(3)") == ["2026-01-31T12:00:00.000"]
    assert shown([2**62], pa.timestamp("us"), "TIMESTAMP(6)") == [str(2**62)]
    array = {"type": "ARRAY", "element": "STRING"}
    assert shown([["a", None, "ü:-"], []], pa.list_(pa.string()), array) == ["[a, null, ü:-]", "[]"]

"""Updates that name changed columns only: both readers keep what an update leaves out."""

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType
from tests.support.decoded import both_decoders, outcome
from tests.support.layout_messages import SOUND, VALUES, text

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
Row = dict[str, Any]
COLUMNS = ("v", "e", "n", "r")
KNOWN = {
    "id": DataType("BIGINT", nullable=False),
    "v": DataType("STRING"),
    "e": DataType("STRING"),
    "n": DataType("BIGINT"),
    "r": DataType("DOUBLE"),
}


@st.composite
def partial_rows(draw: st.DrawFn) -> Row:
    """A row image without some columns, some of the others with values of any type."""
    names = draw(st.lists(st.sampled_from(COLUMNS), unique=True))
    values = {name: draw(VALUES if draw(st.booleans()) else SOUND[name]) for name in names}
    return {"id": draw(st.integers(0, 3)), **values}


def chunk(rows: list[Row], first: int) -> RecordChunk:
    """Messages of GoldenGate: inserts in the first chunk, then updates."""
    values: list[bytes | None] = [
        text(
            {
                "table": "INV.ITEM",
                "op_type": "U" if first else "I",
                "pos": f"{first + place:020}",
                "primary_keys": ["id"],
                "after": row,
            }
        )
        for place, row in enumerate(rows)
    ]
    offsets = np.arange(first, first + len(rows))
    return RecordChunk("ogg.item", 0, offsets, offsets, [None] * len(rows), values, None)


WHOLE: list[Row] = [{"id": 1, "v": "a", "e": "b", "n": 1, "r": 0.5}]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    updates=st.lists(st.lists(partial_rows(), min_size=1, max_size=5), min_size=1, max_size=3),
    known=st.booleans(),
)
@example(
    updates=[[{"id": 1, "v": {"a": 1}}], [{"id": 1, "n": 2}, {"id": 1, "v": {"a": 1}}]], known=True
)
@example(updates=[[{"id": 1, "v": [1]}], [{"id": 1, "n": 2}, {"id": 1, "v": [1]}]], known=False)
def test_an_odd_value_beside_it_makes_no_update_forget_what_it_leaves_out(
    updates: list[list[Row]], known: bool
) -> None:
    native, pure = both_decoders("ogg-json")
    firsts = accumulate([1, *map(len, updates)])
    stream = [chunk(WHOLE, 0), *map(chunk, updates, firsts)]
    tables = {SourceTable(None, "INV", "ITEM"): KNOWN} if known else {}
    assert outcome(native, stream, tables) == outcome(pure, stream, tables)

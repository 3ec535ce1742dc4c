"""Merging types does not depend on who comes first, and never narrows."""

from hypothesis import given
from hypothesis import strategies as st

from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec.data_types import DataType

PLAIN = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "STRING",
    "BYTES",
)


@st.composite
def decimals(draw: st.DrawFn) -> DataType:
    precision = draw(st.integers(1, 38))
    return DataType("DECIMAL", precision=precision, scale=draw(st.integers(0, precision)))


def timed(root: str) -> st.SearchStrategy[DataType]:
    return st.integers(0, 9).map(lambda precision: DataType(root, precision=precision))


def sized(root: str) -> st.SearchStrategy[DataType]:
    return st.integers(1, 100).map(lambda length: DataType(root, length=length))


TYPES = st.one_of(
    st.sampled_from(PLAIN).map(DataType),
    decimals(),
    *(timed(root) for root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")),
    *(sized(root) for root in ("VARCHAR", "VARBINARY")),
)


@given(TYPES, TYPES)
def test_order_does_not_matter(one: DataType, other: DataType) -> None:
    assert merge_types(one, other) == merge_types(other, one)


@given(TYPES, TYPES)
def test_merged_type_takes_both_again_without_growing(one: DataType, other: DataType) -> None:
    merged = merge_types(one, other)
    if merged is not None:
        assert merge_types(merged, one) == merged
        assert merge_types(merged, other) == merged


@given(TYPES)
def test_type_meets_itself(one: DataType) -> None:
    assert merge_types(one, one) == one

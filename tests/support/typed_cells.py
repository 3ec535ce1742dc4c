"""Hypothesis strategies for column types and the cells that go with them."""

from decimal import Decimal

from hypothesis import strategies as st

from ingestd.paimon.spec.data_types import DataField, DataType

_INT_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64, "DATE": 32}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


def scalar_types(*, max_timestamp_precision: int = 9) -> st.SearchStrategy[DataType]:
    """Types whose values are no collections."""
    plain = ["BOOLEAN", "FLOAT", "DOUBLE", "STRING", "BYTES", *_INT_BITS]
    precisions = st.integers(0, max_timestamp_precision)
    return st.one_of(
        st.sampled_from(plain).map(DataType),
        st.builds(DataType, st.sampled_from(["VARCHAR", "VARBINARY"]), length=st.just(80)),
        st.integers(0, 9).map(lambda p: DataType("TIME", precision=p)),
        st.integers(1, 38).flatmap(
            lambda p: st.builds(
                DataType, st.just("DECIMAL"), precision=st.just(p), scale=st.integers(0, p)
            )
        ),
        st.builds(DataType, st.sampled_from(["TIMESTAMP", "TIMESTAMP_LTZ"]), precision=precisions),
    )


def column_types() -> st.SearchStrategy[DataType]:
    """Scalar types, and arrays, maps and rows of them."""
    return st.recursive(scalar_types(), _nested_types, max_leaves=4)


def _nested_types(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return st.one_of(
        st.builds(DataType, st.just("ARRAY"), element=inner),
        st.builds(DataType, st.just("MAP"), key=scalar_types(), value=inner),
        st.lists(inner, min_size=1, max_size=3).map(_row_type),
    )


def _row_type(types: list[DataType]) -> DataType:
    return DataType("ROW", fields=tuple(DataField(i, f"f{i}", t) for i, t in enumerate(types)))


def cells(t: DataType) -> st.SearchStrategy[object]:
    """Values of a type as BinaryRow takes them, nulls among them."""
    return st.none() | _values(t)


def _values(t: DataType) -> st.SearchStrategy[object]:
    if t.root in _INT_BITS:
        half = 1 << (_INT_BITS[t.root] - 1)
        return st.integers(-half, half - 1)
    if t.root == "DECIMAL":
        limit, scale = 10 ** (t.precision or 0) - 1, t.scale or 0
        return st.integers(-limit, limit).map(lambda number: _decimal(number, scale))
    if t.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return st.integers(-(1 << 63), (1 << 63) - 1)
    if t.root in ("VARCHAR", "STRING", "CHAR"):
        return TEXTS
    if t.root in _SIMPLE:
        return _SIMPLE[t.root]
    return _collections(t)


_SIMPLE: dict[str, st.SearchStrategy[object]] = {
    "BOOLEAN": st.booleans(),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "TIME": st.integers(0, 86_399_999),
    "BYTES": st.binary(max_size=40),
    "VARBINARY": st.binary(max_size=40),
}


def _decimal(number: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -scale))


def _collections(t: DataType) -> st.SearchStrategy[object]:
    if t.element is not None:
        return st.lists(cells(t.element), max_size=40 if t.element.root in _INT_BITS else 4)
    if t.key is not None and t.value is not None:
        pairs = st.tuples(_values(t.key), cells(t.value))
        return st.lists(pairs, max_size=3)
    return st.tuples(*(cells(field.type) for field in t.fields))


def same(left: object, right: object) -> bool:
    """Equality of cells in which NaN equals NaN and -0.0 is not 0.0."""
    return _comparable(left) == _comparable(right)


def _comparable(cell: object) -> object:
    if isinstance(cell, float):
        return "NaN" if cell != cell else repr(cell)
    if isinstance(cell, list | tuple):
        return [_comparable(item) for item in cell]
    if isinstance(cell, Decimal):
        return cell.as_tuple()
    return cell

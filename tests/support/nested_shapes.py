"""Random nested data types, and rows of them with nulls at any depth, for property tests.

Maps have STRING keys, and timestamps stay within what every file format can hold.
"""

from typing import Any

from hypothesis import strategies as st

_LEAVES = {
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "STRING": st.text("aé𝄞", max_size=3),
    "BOOLEAN": st.booleans(),
    "TIMESTAMP(3)": st.integers(0, 4 * 10**12),
    "BYTES": st.binary(max_size=3),
}


@st.composite
def nested_types(draw: st.DrawFn, depth: int = 4) -> Any:
    """A data type as a schema file has it, nested up to `depth` levels; ids are unique."""
    numbers = iter(range(1, 1 << 20))

    def inner(left: int) -> Any:
        kind = draw(st.sampled_from(["ROW", "ROW", "ARRAY", "MAP", "leaf"])) if left else "leaf"
        if kind == "leaf":
            return draw(st.sampled_from(sorted(_LEAVES)))
        if kind == "ROW":
            names = ["x", "y", "z"][: draw(st.integers(1, 3))]
            fields = [{"id": next(numbers), "name": n, "type": inner(left - 1)} for n in names]
            return {"type": "ROW", "fields": fields}
        if kind == "ARRAY":
            return {"type": "ARRAY", "element": inner(left - 1)}
        return {"type": "MAP", "key": "STRING", "value": inner(left - 1)}

    return inner(depth)


@st.composite
def cells(draw: st.DrawFn, kind: Any, most: int = 8) -> list[Any]:
    """A few values of a type as `ingestd.paimon.spec.arrow.column_of` takes them.

    Each part of the type has either some nulls or none, since writers take shortcuts for both.
    """

    def inner(kind: Any) -> st.SearchStrategy[Any]:
        values: st.SearchStrategy[Any]
        if isinstance(kind, str):
            values = _LEAVES[kind]
        elif kind["type"] == "ROW":
            values = st.tuples(*(inner(field["type"]) for field in kind["fields"]))
        elif kind["type"] == "ARRAY":
            values = st.lists(inner(kind["element"]), max_size=3)
        else:
            entries = st.dictionaries(st.sampled_from("abc"), inner(kind["value"]), max_size=2)
            values = entries.map(lambda found: list(found.items()))
        return st.none() | values if draw(st.booleans()) else values

    return draw(st.lists(inner(kind), min_size=min(3, most), max_size=most))

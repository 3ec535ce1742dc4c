"""SQL expressions on whole columns give what a plain model gives row by row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import Outcome, read_expression, run_expression
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType, parse_type

Row = Mapping[str, object]
TYPES = {
    "a": parse_type("BIGINT"),
    "b": parse_type("BIGINT"),
    "s": parse_type("STRING"),
    "t": parse_type("STRING"),
    "o": parse_type("BOOLEAN"),
}
NUMBERS = st.none() | st.integers(-4, 4) | st.sampled_from([2**62, -(2**63)])
TEXTS = st.none() | st.sampled_from(["", "a", "Ab", "b%", "ä_c"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {"a": NUMBERS, "b": NUMBERS, "s": TEXTS, "t": TEXTS, "o": st.none() | st.booleans()}
    ),
    min_size=1,
    max_size=6,
)


class FailError(Exception):
    """The row has no value."""


@dataclass(frozen=True)
class Part:
    sql: str
    value: Callable[[Row], object]


def column(name: str) -> Part:
    return Part(name, lambda row: row[name])


def literal(value: object) -> Part:
    sql = "NULL" if value is None else repr(value) if isinstance(value, int) else f"'{value}'"
    return Part("cast(NULL as bigint)" if value is None else sql, lambda row: value)


def strict(function: Callable[..., object], sql: str, *parts: Part) -> Part:
    def value(row: Row) -> object:
        found = [one.value(row) for one in parts]
        return None if any(one is None for one in found) else function(*found)

    return Part(sql.format(*(one.sql for one in parts)), value)


def long(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise FailError
    return number


def quotient(one: int, other: int) -> int:
    if other == 0:
        raise FailError
    return long(abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def rest(one: int, other: int) -> int:
    if other == 0:
        raise FailError
    return abs(one) % abs(other) * (-1 if one < 0 else 1)


def number_of(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: strict(lambda x, y: long(x + y), "({} + {})", *p)),
        pairs.map(lambda p: strict(lambda x, y: long(x - y), "({} - {})", *p)),
        pairs.map(lambda p: strict(lambda x, y: long(x * y), "({} * {})", *p)),
        pairs.map(lambda p: strict(quotient, "({} div {})", *p)),
        pairs.map(lambda p: strict(rest, "({} % {})", *p)),
        st.tuples(st.deferred(lambda: CONDITIONS), inner, inner).map(case),
        pairs.map(lambda p: coalesce(*p)),
    )


def case(parts: tuple[Part, Part, Part]) -> Part:
    condition, one, other = parts
    return Part(
        f"case when {condition.sql} then {one.sql} else {other.sql} end",
        lambda row: (one if condition.value(row) is True else other).value(row),
    )


def coalesce(one: Part, other: Part) -> Part:
    def value(row: Row) -> object:
        first = one.value(row)
        return other.value(row) if first is None else first

    return Part(f"coalesce({one.sql}, {other.sql})", value)


def both(one: Part, other: Part) -> Part:
    def value(row: Row) -> object:
        first = one.value(row)
        if first is False:
            return False
        second = other.value(row)
        return False if second is False else None if None in (first, second) else True

    return Part(f"({one.sql} and {other.sql})", value)


def any_of(one: Part, other: Part) -> Part:
    def value(row: Row) -> object:
        first = one.value(row)
        if first is True:
            return True
        second = other.value(row)
        return True if second is True else None if None in (first, second) else False

    return Part(f"({one.sql} or {other.sql})", value)


def among(parts: tuple[Part, Part, Part]) -> Part:
    wanted, *items = parts

    def value(row: Row) -> object:
        sought, *found = (one.value(row) for one in (wanted, *items))
        if sought is None:
            return None
        return (
            True
            if sought in [f for f in found if f is not None]
            else (None if None in found else False)
        )

    return Part(f"({wanted.sql} in ({items[0].sql}, {items[1].sql}))", value)


def is_null(part: Part) -> Part:
    return Part(f"({part.sql} is null)", lambda row: part.value(row) is None)


COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    ">=": lambda x, y: x >= y,
}


def condition_of(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: both(*p)),
        st.tuples(inner, inner).map(lambda p: any_of(*p)),
        inner.map(lambda p: strict(lambda x: not x, "(not {})", p)),
        inner.map(is_null),
    )


NUMBER_LEAVES = st.sampled_from([column("a"), column("b"), *map(literal, (None, -2, 0, 1, 3))])
INTEGERS = st.recursive(NUMBER_LEAVES, number_of, max_leaves=6)
CONDITION_LEAVES = st.one_of(
    st.just(column("o")),
    st.tuples(NUMBER_LEAVES, NUMBER_LEAVES, st.sampled_from(sorted(COMPARISONS))).map(
        lambda p: strict(COMPARISONS[p[2]], f"({{}} {p[2]} {{}})", p[0], p[1])
    ),
    st.tuples(NUMBER_LEAVES, NUMBER_LEAVES, NUMBER_LEAVES).map(among),
    st.sampled_from([column("s"), column("t")]).map(is_null),
)
CONDITIONS = st.recursive(CONDITION_LEAVES, condition_of, max_leaves=4)
TEXT_LEAVES = st.sampled_from([column("s"), column("t"), literal("x"), literal("")])


def text_of(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    begin = st.integers(1, 3)
    return st.one_of(
        st.tuples(inner, inner).map(lambda p: strict(lambda x, y: x + y, "concat({}, {})", *p)),
        inner.map(lambda p: strict(str.upper, "upper({})", p)),
        inner.map(lambda p: strict(lambda x: x[::-1], "reverse({})", p)),
        st.tuples(inner, begin, begin).map(
            lambda p: strict(
                lambda x: x[p[1] - 1 : p[1] - 1 + p[2]], f"substring({{}}, {p[1]}, {p[2]})", p[0]
            )
        ),
        st.tuples(CONDITIONS, inner, inner).map(case),
        st.tuples(inner, inner).map(lambda p: coalesce(*p)),
    )


def run(sql: str, rows: list[Row], types: Mapping[str, DataType] = TYPES) -> Outcome:
    columns = {
        name: pa.array([row[name] for row in rows], to_arrow_type(data_type))
        for name, data_type in types.items()
    }
    made = run_expression(read_expression(sql), types, Frame(columns, len(rows)))
    assert made is not None
    return made


def modelled(part: Part, row: Row) -> object:
    try:
        return part.value(row)
    except FailError:
        return FailError


def compare(part: Part, rows: list[Row]) -> None:
    made = run(part.sql, rows)
    found = [
        FailError if failed else value
        for value, failed in zip(made.values.to_pylist(), made.failed.tolist(), strict=True)
    ]
    assert found == [modelled(part, row) for row in rows], part.sql


@given(INTEGERS, ROWS)
def test_numbers_are_those_of_the_model(part: Part, rows: list[Row]) -> None:
    compare(part, rows)


@given(CONDITIONS, ROWS)
def test_conditions_have_three_values(part: Part, rows: list[Row]) -> None:
    compare(part, rows)


@given(st.recursive(TEXT_LEAVES, text_of, max_leaves=5), ROWS)
def test_texts_are_those_of_the_model(part: Part, rows: list[Row]) -> None:
    compare(part, rows)


DECIMALS = st.decimals(-(10**6), 10**6, places=3).map(lambda d: d.quantize(Decimal("0.001")))
EXACT: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "d + e": lambda d, e: d + e,
    "d - e": lambda d, e: d - e,
    "d * e": lambda d, e: d * e,
    "d / e": lambda d, e: d / e,
    "d % e": lambda d, e: d % e,
    "d div e": lambda d, e: (d / e).to_integral_value(ROUND_DOWN),
    "round(d, 1)": lambda d, e: d.quantize(Decimal("0.1"), ROUND_HALF_UP),
    "round(d * 1.005, 2)": lambda d, e: (d * Decimal("1.005")).quantize(
        Decimal("0.01"), ROUND_HALF_UP
    ),
    "floor(d) + ceil(e)": lambda d, e: Decimal(d.__floor__() + e.__ceil__()),
    "cast(d as decimal(9, 0))": lambda d, e: d.quantize(Decimal(1), ROUND_HALF_UP),
    "d - 0.25 * (e + 1)": lambda d, e: d - Decimal("0.25") * (e + 1),
}


@given(st.sampled_from(sorted(EXACT)), DECIMALS, DECIMALS)
def test_decimals_are_exact_and_rounded_half_up(sql: str, d: Decimal, e: Decimal) -> None:
    made = run(sql, [{"d": d, "e": e}], {"d": parse_type("DECIMAL(10, 3)"),
                                         "e": parse_type("DECIMAL(12, 3)")})  # fmt: skip
    if e == 0 and ("/" in sql or "%" in sql or "div" in sql):
        assert made.failed.tolist() == [True]
        return
    with localcontext(prec=100):
        wanted = EXACT[sql](d, e)
        if made.type.root == "DECIMAL":
            wanted = wanted.quantize(Decimal(1).scaleb(-(made.type.scale or 0)), ROUND_HALF_UP)
    assert (made.values.to_pylist(), made.failed.tolist()) == ([wanted], [False])

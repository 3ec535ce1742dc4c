from decimal import Decimal

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.predicate import And, Comparison, IsIn, IsNull, Like, Not, Or, Predicate
from ingestd.paimon.spec.predicate_stats import ColumnStats, may_match, stats_test
from ingestd.paimon.spec.predicate_text import parse_predicate

FIELDS = [
    DataField(i, name, parse_type(text))
    for i, (name, text) in enumerate(
        {"a": "INT", "s": "STRING", "d": "DATE", "m": "DECIMAL(5, 2)", "not": "INT"}.items()
    )
]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = 1", Comparison("a", "=", 1)),
        ("a<>-1", Comparison("a", "!=", -1)),
        ("`a` >= '1'", Comparison("a", ">=", 1)),
        ("m < 1.50", Comparison("m", "<", Decimal("1.50"))),
        ("s = 'it''s'", Comparison("s", "=", "it's")),
        ("d = '1970-01-03'", Comparison("d", "=", 2)),
        ("d = 1970-01-03", Comparison("d", "=", 2)),
        ("a in (1,2)", IsIn("a", (1, 2))),
        ("a NOT IN (1)", Not(IsIn("a", (1,)))),
        ("s is null", IsNull("s")),
        ("s IS NOT NULL", Not(IsNull("s"))),
        ("s like 'x%'", Like("s", "x%")),
        ('"not" = 1', Comparison("not", "=", 1)),
        ("a BETWEEN 1 AND 2", And((Comparison("a", ">=", 1), Comparison("a", "<=", 2)))),
        (
            "a = 1 OR a = 2 AND s = 'x'",
            Or((Comparison("a", "=", 1),
                And((Comparison("a", "=", 2), Comparison("s", "=", "x"))))),
        ),
        (
            "NOT (a = 1 OR s IS NULL) AND a = 3",
            And((Not(Or((Comparison("a", "=", 1), IsNull("s")))), Comparison("a", "=", 3))),
        ),
    ],
)  # fmt: skip
def test_text_becomes_a_predicate(text: str, wanted: Predicate) -> None:
    assert parse_predicate(text, FIELDS) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a column name is expected"),
        ("b = 1", "unknown column 'b'; the columns are a, s, d, m, not"),
        ("a = x", "'x' is no value of type INT"),
        ("a = 1.5", "no value of type INT"),
        ("a = 3000000000", "no value of type INT"),
        ("m = 1000", "no value"),
        ("s = x", "write 'x' in quotes"),
        ("a = NULL", "IS NULL"),
        ("a =", "a value is expected"),
        ("a", "a condition is missing"),
        ("a = 1 a = 2", "'a' is not expected here"),
        ("(a = 1", r"'\)' is expected"),
        ("a LIKE 'x'", "LIKE is for texts"),
        ("s = 'x", "cannot be understood"),
        ("a = 1 ! 2", "cannot be understood"),
        ("d = '2024-02-30'", "no value of type DATE"),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_predicate(text, FIELDS)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("f = 0.1", True),
        ("f <= 0.1", True),
        ("f IN (0.1)", True),
        ("f >= 0.1", True),
        ("f > 0.1", False),
        ("f < 0.1", False),
    ],
)
def test_statistics_of_a_float_column_and_its_literals_have_the_same_digits(
    text: str, matches: bool
) -> None:
    stored = 0.10000000149011612
    predicate = parse_predicate(text, [DataField(0, "f", parse_type("FLOAT"))])
    stats = stats_test({"f": ColumnStats(stored, stored, 0, 1)})
    assert may_match(predicate, stats) is matches

"""`ingestd compare` and PostgreSQL: the same texts of values of every type."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.compare import postgres
from ingestd.compare.canonical import canonical_texts
from ingestd.compare.drivers import connect
from ingestd.compare.source_table import read_source_table
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.support.postgres_server import PostgresServer, is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not is_supported(), reason="PostgreSQL is fetched for Linux on x86-64 only"),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@dataclass(frozen=True)
class Typed:
    """A type of PostgreSQL, the type that its column has in the lake, and values of both."""

    source: str
    lake: str
    values: Sequence[tuple[str, Any]]
    """SQL literals, and the values that Arrow takes."""


def numbers(count: int, low: int, high: int) -> list[int]:
    dice = random.Random(low * 31 + high)
    return [low, high, 0, 1, -1, *(dice.randint(low, high) for _ in range(count))]


def floats() -> list[float]:
    dice = random.Random(7)
    plain = [0.0, -0.0, 0.1, 1e20, 1e-7, 5e-324, 1.7976931348623157e308, -123456.789, 1e15, 1e16]
    return plain + [dice.uniform(-1, 1) * 10.0 ** dice.randint(-300, 300) for _ in range(200)]


def texts() -> list[str]:
    dice = random.Random(11)
    letters = "aZ 0:-,;'\"\\{}\n\tü€😀%_"
    made = ["".join(dice.choices(letters, k=dice.randint(0, 12))) for _ in range(200)]
    return ["", " ", "  x  ", "3:abc", "-", *made]


def moments() -> list[datetime]:
    dice = random.Random(13)
    first = datetime(1, 1, 1, tzinfo=UTC)
    span = int((datetime(9999, 12, 31, tzinfo=UTC) - first).total_seconds())
    made = [
        first + timedelta(seconds=dice.randrange(span), microseconds=dice.randrange(10**6))
        for _ in range(200)
    ]
    return [EPOCH, EPOCH - timedelta(microseconds=1), *made]


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def decimals(scale: int) -> list[str]:
    dice = random.Random(scale)
    made = [
        f"{dice.randint(-(10**12), 10**12)}.{dice.randrange(10**scale):0{scale}d}"
        for _ in range(99)
    ]
    return ["0." + "0" * scale, "-0." + "0" * (scale - 1) + "1", *made]


def listed(items: Sequence[str | None]) -> str:
    return "ARRAY[" + ", ".join("NULL" if item is None else literal(item) for item in items) + "]"


def typed() -> Iterator[Typed]:
    for source, lake, bits in (
        ("smallint", "SMALLINT", 15),
        ("integer", "INT", 31),
        ("bigint", "BIGINT", 63),
    ):
        whole = numbers(50, -(2**bits), 2**bits - 1)
        yield Typed(source, lake, [(str(one), one) for one in whole])
        yield Typed(source, "BIGINT", [(str(one), one) for one in whole])
        yield Typed(source, "DECIMAL(25, 3)", [(str(one), Decimal(one)) for one in whole])
        yield Typed(source, "STRING", [(str(one), str(one)) for one in whole])
    yield Typed("double precision", "DOUBLE", [(f"'{one!r}'", one) for one in floats()])
    yield Typed(
        "double precision",
        "DOUBLE",
        [(literal(t), float(t)) for t in ("NaN", "Infinity", "-Infinity")],
    )
    small = [
        float(pa.scalar(one, pa.float32()).as_py())
        for one in floats()
        if abs(one) < 1e38 and (one == 0 or abs(one) > 1e-37)
    ]
    yield Typed("real", "FLOAT", [(f"'{one!r}'", one) for one in [*small, float("nan")]])
    yield Typed("real", "DOUBLE", [(f"'{one!r}'", one) for one in small])
    yield Typed("boolean", "BOOLEAN", [("true", True), ("false", False)])
    yield Typed("bit(1)", "BOOLEAN", [("B'1'", True), ("B'0'", False)])
    yield Typed(
        "numeric(20,4)", "DECIMAL(20, 4)", [(decimal, Decimal(decimal)) for decimal in decimals(4)]
    )
    yield Typed(
        "numeric(20,9)",
        "DECIMAL(38, 12)",
        [(one, Decimal(one)) for one in ["1e-9", "-1e-9", "12345678901.123456789"]],
    )
    yield Typed(
        "numeric",
        "STRING",
        [(decimal, decimal) for decimal in [*decimals(3), "1.500", "100", "1000", "0"]],
    )
    special = ("NaN", "Infinity", "-Infinity")
    yield Typed("numeric", "STRING", [(literal(one), one) for one in special])
    yield Typed("numeric", "DOUBLE", [(literal(one), float(one)) for one in special])
    yield Typed(
        "date",
        "DATE",
        [(literal(str(timestamp.date())), timestamp.date()) for timestamp in moments()],
    )
    for source, lake in (("timestamp", "TIMESTAMP(6)"), ("timestamptz", "TIMESTAMP_LTZ(6)")):
        yield Typed(
            source,
            lake,
            [(literal(timestamp.isoformat()), micros(timestamp)) for timestamp in moments()],
        )
    coarse = [
        timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)
        for timestamp in moments()
    ]
    yield Typed(
        "timestamp(3)",
        "TIMESTAMP(3)",
        [(literal(one.isoformat(sep=" ")), micros(one) // 1000) for one in coarse],
    )
    yield Typed(
        "timestamp",
        "TIMESTAMP(6)",
        [("'infinity'", 9_223_372_036_825_200_000), ("'-infinity'", -9_223_372_036_832_400_000)],
    )
    yield Typed(
        "time(3)",
        "TIME(3)",
        [("'00:00:00'", 0), ("'23:59:59.999'", 86_399_999), ("'01:02:03.004'", 3_723_004)],
    )
    yield Typed("time", "BIGINT", [("'01:02:03.000004'", 3_723_000_004), ("'00:00'", 0)])
    for source in ("text", "varchar(20)"):
        yield Typed(source, "STRING", [(literal(text), text) for text in texts()])
    yield Typed(
        "char(6)", "STRING", [(literal(one), one.ljust(6)) for one in ("", "a", "ab  ", "ü€")]
    )
    yield Typed(
        "bytea", "BYTES", [(f"'\\x{text.encode().hex()}'", text.encode()) for text in texts()]
    )
    yield Typed(
        "uuid",
        "STRING",
        [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")],
    )
    yield Typed(
        "jsonb", "STRING", [("""'{"b":1,"a":[1, 2.50,"ü"]}'""", '{"a": [1, 2.50, "ü"], "b": 1}')]
    )
    yield Typed("json", "STRING", [("""'{"b":1,  "a":2}'""", '{"b":1,  "a":2}')])
    yield Typed(
        "inet",
        "STRING",
        [("'10.0.0.1'", "10.0.0.1"), ("'10.0.0.0/8'", "10.0.0.0/8"), ("'::1'", "::1")],
    )
    yield Typed("cidr", "STRING", [("'10.0.0.0/8'", "10.0.0.0/8")])
    yield Typed(
        "text[]",
        "ARRAY<STRING>",
        [
            ("'{}'::text[]", []),
            *((listed([text, None, text]), [text, None, text]) for text in texts()),
        ],
    )
    yield Typed("integer[]", "ARRAY<INT>", [("'{1,NULL,-3}'", [1, None, -3]), ("'{}'", [])])
    yield Typed(
        "numeric(10,2)[]", "ARRAY<DECIMAL(10, 2)>", [("'{1.5,NULL}'", [Decimal("1.50"), None])]
    )
    yield Typed(
        "timestamp[]",
        "ARRAY<TIMESTAMP(6)>",
        [("""'{"2026-01-01 00:00:00.000001"}'""", [datetime(2026, 1, 1, 0, 0, 0, 1, UTC)])],
    )


@pytest.mark.parametrize("one", list(typed()), ids=lambda one: f"{one.source} as {one.lake}")
def test_the_database_and_the_lake_make_the_same_text_of_a_value(
    one: Typed, server: PostgresServer
) -> None:
    values = [*one.values, ("NULL", None)]
    rows = ", ".join(f"({number}, {text})" for number, (text, _) in enumerate(values))
    table = f"CREATE TABLE t (n int PRIMARY KEY, v {one.source})"
    with server.connect() as client:
        client.run(f"DROP TABLE IF EXISTS t; {table}; INSERT INTO t VALUES {rows}")
    lake = lake_type(one.lake)
    connection = connect(server.url, 10)
    column = read_source_table(connection, "public", "t").columns["v"]
    made = postgres.text_sql(column, lake)
    assert made is not None
    found = connection.query(f"SELECT {made[0]} FROM t ORDER BY n")
    connection.close()
    array = arrow_values([value for _, value in values], lake)
    assert [text for (text,) in found] == canonical_texts(array, lake, made[1]).to_pylist()


@pytest.mark.parametrize(
    ("source", "lake"),
    [("date", "DATE"), ("timestamp", "TIMESTAMP(6)"), ("timestamptz", "TIMESTAMP_LTZ(6)")],
)
def test_a_key_is_found_by_its_canonical_text(
    source: str, lake: str, server: PostgresServer
) -> None:
    """Microseconds of distant years are exact, and infinite values are keys, too."""
    exact = sorted({one.date() if source == "date" else one for one in moments()})
    keys = ["infinity", "-infinity", *(one.isoformat() for one in exact), "200000-12-31"]
    rows = ", ".join(f"('{one}')" for one in keys)
    with server.connect() as client:
        client.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t (v {source} PRIMARY KEY)")
        client.run(f"INSERT INTO t VALUES {rows}")
    with closing(connect(server.url, 10)) as connection:
        column = read_source_table(connection, "public", "t").columns["v"]
        value = postgres.key_sql(column, parse_type(lake))
        made = postgres.text_sql(column, parse_type(lake))
        assert made is not None
        assert value is not None
        texts = connection.query(f"SELECT {made[0]} FROM t")
        for text in texts:
            condition, parameters = postgres.listed(["v"], [value], [text])
            found = connection.query(f"SELECT {made[0]} FROM t WHERE {condition}", parameters)
            assert found == [text]
    assert len(texts) == len(keys)


def lake_type(text: str) -> DataType:
    inner = text.removeprefix("ARRAY<").removesuffix(">")
    return parse_type(text if inner == text else {"type": "ARRAY", "element": inner})


def arrow_values(values: Sequence[Any], t: DataType) -> Any:
    kind = to_arrow_type(t)
    if t.root == "TIME":
        return pa.array(values, pa.int32()).cast(kind)
    if t.root.startswith("TIMESTAMP"):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)

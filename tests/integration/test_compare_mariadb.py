"""`ingestd compare` with a MariaDB server: texts of every type, and differing rows by key."""

import json
import math
import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.compare import pipeline_compare
from ingestd.compare.canonical import canonical_texts
from ingestd.compare.dialect import Connection
from ingestd.compare.drivers import connect
from ingestd.compare.source_table import read_source_table
from ingestd.compare.throttle import Throttle
from ingestd.errors import ConfigError, SourceError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.integration.test_compare import CONFIG, check_resumption, record
from tests.integration.test_compare_texts import arrow_values
from tests.support.clock import Clock
from tests.support.command_line import run_command
from tests.support.mariadb_server import MariaDbServer, insert
from tests.support.postgres_server import is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not is_supported(), reason="MariaDB is fetched for Linux on x86-64 only"),
]
Capture = pytest.CaptureFixture[str]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS = 300


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDbServer]:
    with MariaDbServer() as running:
        yield running


@pytest.fixture
def connection(server: MariaDbServer) -> Iterator[Connection]:
    with closing(connect(server.url, 30)) as connected:
        yield connected


@dataclass(frozen=True)
class Typed:
    """A type of MariaDB, the type of its column in the lake, and values of both."""

    source: str
    lake: str
    values: Sequence[tuple[Any, Any]]
    """Values for PyMySQL, and those for Arrow."""


def same(source: str, lake: str, values: Sequence[Any]) -> Typed:
    return Typed(source, lake, [(value, value) for value in values])


def doubles() -> list[float]:
    dice = random.Random(7)
    powers = [2.0**exponent for exponent in range(-1074, 1024, 3)]
    near = [neighbour for power in powers for neighbour in (math.nextafter(power, 0), -power)]
    made = [struct.unpack(">d", dice.randbytes(8))[0] for _ in range(500)]
    finite = [value for value in made if math.isfinite(value)]
    return [0.0, -0.0, 0.1, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, *near, *finite]


def singles() -> list[float]:
    dice = random.Random(8)
    made = [struct.unpack(">f", dice.randbytes(4))[0] for _ in range(500)]
    finite = [value for value in made if math.isfinite(value)]
    return [0.0, 1.5, 2.0**-149, 2.0**-126, 16777215.0, *finite]


def moments(first_year: int, last_year: int) -> list[datetime]:
    dice = random.Random(first_year)
    first = datetime(first_year, 1, 1, tzinfo=UTC)
    span = int((datetime(last_year, 12, 31, tzinfo=UTC) - first).total_seconds())
    made = [
        first + timedelta(seconds=dice.randrange(span), microseconds=dice.randrange(10**6))
        for _ in range(200)
    ]
    return [EPOCH + timedelta(seconds=1), *made]


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def wrapped(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


TEXTS = ["", " ", "  x", "x  ", "3:abc", "-", "it's", 'q"\\%s\n\t', "ü€", "😀"]
UNSIGNED = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
TIMES = [
    (timedelta(hours=1, microseconds=5), 3_600_000_005),
    (timedelta(hours=-838, minutes=-59, seconds=-59), -3_020_399_000_000),
    (timedelta(microseconds=-1_500_000), -1_500_000),
]


def typed() -> Iterator[Typed]:
    for source, lake, bits in (
        ("tinyint", "SMALLINT", 7),
        ("smallint", "SMALLINT", 15),
        ("mediumint", "INT", 23),
        ("int(8) zerofill", "BIGINT", 31),
        ("bigint", "BIGINT", 63),
    ):
        lowest = 0 if "zerofill" in source else -(2**bits)
        yield same(source, lake, [lowest, 2**bits - 1, 0, 7])
    yield Typed("bigint unsigned", "BIGINT", [(one, wrapped(one)) for one in UNSIGNED])
    yield Typed("bigint unsigned", "DECIMAL(20, 0)", [(one, Decimal(one)) for one in UNSIGNED])
    yield Typed("int", "STRING", [(-5, "-5"), (0, "0")])
    yield Typed("tinyint(1)", "BOOLEAN", [(0, False), (1, True)])
    yield same("tinyint(1)", "SMALLINT", [0, 1, -7])
    yield Typed("bit(1)", "BOOLEAN", [(b"\0", False), (b"\1", True)])
    yield same("bit(9)", "BYTES", [b"\0\0", b"\1\xff", b"\0\7"])
    yield same("year", "INT", [1901, 2026, 0])
    yield same("double", "DOUBLE", doubles())
    yield same("float", "FLOAT", singles())
    yield same("float", "DOUBLE", singles())
    yield same("decimal(20,4)", "DECIMAL(20, 4)", [Decimal("-0.0001"), Decimal("12345.5000")])
    yield Typed("decimal(20,4)", "DECIMAL(24, 6)", [(Decimal("1.5"), Decimal("1.500000"))])
    yield Typed("decimal(8,2) unsigned zerofill", "STRING", [(Decimal("1.5"), "1.50")])
    yield Typed("decimal(12,3)", "DOUBLE", [(Decimal("0.1"), 0.1), (Decimal("-7"), -7.0)])
    yield same("date", "DATE", [timestamp.date() for timestamp in moments(100, 9999)])
    yield Typed("date", "DATE", [("0000-00-00", None), ("2026-00-01", None)])
    yield Typed("date NOT NULL", "DATE", [("0000-00-00", date(1970, 1, 1))])
    exact = moments(1000, 9999)
    yield Typed("datetime(6)", "TIMESTAMP(6)", [(one, micros(one)) for one in exact])
    yield Typed("datetime(6)", "BIGINT", [(one, micros(one)) for one in exact])
    whole = [one.replace(microsecond=one.microsecond // 1000 * 1000) for one in exact]
    yield Typed("datetime(3)", "TIMESTAMP(3)", [(one, micros(one) // 1000) for one in whole])
    yield Typed("datetime(6)", "TIMESTAMP(3)", [(one, micros(one) // 1000) for one in exact])
    yield Typed("datetime", "TIMESTAMP(3)", [("0000-00-00 00:00:00", None)])
    recent = moments(1971, 2037)
    yield Typed("timestamp(6) NULL", "TIMESTAMP_LTZ(6)", [(one, micros(one)) for one in recent])
    yield Typed("time(6)", "BIGINT", TIMES)
    yield Typed("time(3)", "TIME(3)", [(timedelta(seconds=86_399, milliseconds=999), 86_399_999)])
    for source in ("varchar(20)", "text", "longtext", "varchar(20) COLLATE utf8mb4_bin"):
        yield same(source, "STRING", TEXTS)
    yield Typed("varchar(20) CHARACTER SET latin1", "STRING", [("ü€", "ü€"), ("x ", "x ")])
    yield Typed("char(6)", "STRING", [("ab  ", "ab"), ("", "")])
    yield same("varbinary(9)", "BYTES", [b"", b"\0\xff", b"a  "])
    yield same("longblob", "BYTES", [b"", bytes(range(256))])
    sizes = [("small", "small"), ("ü", "ü"), ("a,b", "a\\,b"), ("a,b", "a,b")]
    yield Typed("enum('small','a,b','ü')", "STRING", sizes)
    yield Typed("set('x','y','z')", "STRING", [("z,x", "x,z"), ("", "")])
    yield same("json", "STRING", ['{"b":1,  "a":[2.50,"ü"]}'])


@pytest.mark.parametrize("case", list(typed()), ids=lambda case: f"{case.source} as {case.lake}")
def test_the_database_and_the_lake_have_the_same_text_of_a_value(
    case: Typed, server: MariaDbServer, connection: Connection
) -> None:
    values = [*case.values, *([] if "NOT NULL" in case.source else [(None, None)])]
    server.run(
        "SET GLOBAL time_zone = '+00:00'",
        "SET GLOBAL sql_mode = ''",
        "DROP TABLE IF EXISTS shop.t",
        f"CREATE TABLE shop.t (n int PRIMARY KEY, v {case.source})",
    )
    insert(server, "shop.t", [(number, value) for number, (value, _) in enumerate(values)])
    lake: DataType = parse_type(case.lake)
    column = read_source_table(connection, "shop", "t").columns["v"]
    made = connection.dialect.text_sql(column, lake)
    assert made is not None
    texts = connection.query(f"SELECT {made[0]} FROM shop.t ORDER BY n")
    array = arrow_values([value for _, value in values], lake)
    assert [text for (text,) in texts] == canonical_texts(array, lake, made[1]).to_pylist()


@pytest.mark.parametrize(
    ("source", "lake"),
    [
        ("point", "STRING"),
        ("datetime", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("timestamp NULL", "STRING"),
        ("decimal(60,31)", "DECIMAL(38, 31)"),
        ("bit(9)", "STRING"),
        ("text", "BYTES"),
        ("double", "FLOAT"),
    ],
)
def test_pairs_of_types_without_a_common_text_are_not_compared(
    source: str, lake: str, server: MariaDbServer, connection: Connection
) -> None:
    server.run(
        "DROP TABLE IF EXISTS shop.t", f"CREATE TABLE shop.t (n int PRIMARY KEY, v {source})"
    )
    column = read_source_table(connection, "shop", "t").columns["v"]
    assert connection.dialect.text_sql(column, parse_type(lake)) is None


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("score", pa.float64()),
        ("at", pa.timestamp("us")),
    ]
)
NAMED = pa.schema(
    [
        pa.field("region", pa.string(), nullable=False),
        pa.field("n", pa.int32(), nullable=False),
        ("note", pa.string()),
    ]
)


def order(number: int) -> dict[str, Any]:
    return {
        "id": wrapped(2**64 - ROWS + number - 1) if number > ROWS - 3 else number * 3,
        "name": f"name {number}",
        "price": Decimal(number) / 4,
        "score": number / 3,
        "at": EPOCH + timedelta(microseconds=number),
    }


def named(number: int) -> dict[str, Any]:
    return {"region": ("Ä ", "a", "b%")[number % 3].strip(), "n": number, "note": f"{number}"}


class Lake:
    """A warehouse with the rows of two tables of MariaDB, and a configuration."""

    def __init__(self, folder: Path, server: MariaDbServer) -> None:
        server.run(
            "DROP DATABASE shop",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id bigint unsigned PRIMARY KEY, name text,"
            " price decimal(10,2), score double, at datetime(6), place point)",
            "CREATE TABLE shop.`odd %s` (region varchar(9) COLLATE utf8mb4_general_ci, n int,"
            " note text, PRIMARY KEY (region, n))",
            "CREATE TABLE shop.unread (id int PRIMARY KEY)",
        )
        orders = [order(number) for number in range(1, ROWS + 1)]
        rows = [(order["id"] % 2**64, *list(order.values())[1:], None) for order in orders]
        insert(server, "shop.orders", rows)
        odd = [named(number) for number in range(1, ROWS + 1)]
        insert(server, "shop.`odd %%s`", [tuple(one.values()) for one in odd])
        self.config = folder / "ingestd.yaml"
        self.config.write_text(CONFIG.format(lake=folder / "lake"))
        warehouse = paimon.open_warehouse(str(folder / "lake"))
        options = {"bucket": "2", "ingestd.pipelines": "shop"}
        self.orders = warehouse.create("ods.orders", SCHEMA, primary_keys=["id"], options=options)
        self.orders.write(orders)
        self.odd = warehouse.create("ods.odd", NAMED, primary_keys=["region", "n"], options=options)
        self.odd.write(odd)
        record(self.orders.files, QualifiedSourceTable("shop", "shop", None, "orders"))
        record(self.odd.files, QualifiedSourceTable("shop", "shop", None, "odd %s"))


@pytest.fixture
def lake(tmp_path: Path, server: MariaDbServer) -> Lake:
    return Lake(tmp_path, server)


def compared(
    capsys: Capture, lake: Lake, server: MariaDbServer, *more: str, code: int
) -> Mapping[str, Any]:
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest", "--json")
    done = run_command(capsys, *words, "--page-rows", "60", *more)
    assert done.code == code, done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def test_equal_tables_are_equal(lake: Lake, server: MariaDbServer, capsys: Capture) -> None:
    document = compared(capsys, lake, server, code=0)
    results = {table["table"]: table for table in document["tables"]}
    assert {name: (one["rows"], one["compared_by"]) for name, one in results.items()} == {
        "ods.orders": (ROWS, "key-ranges"),
        "ods.odd": (ROWS, "key-hashes"),
    }
    assert document["only_in_source"] == ["shop.unread"]


def test_a_changed_a_deleted_and_an_added_row_are_found_by_key(
    lake: Lake, server: MariaDbServer, capsys: Capture
) -> None:
    lake.orders.write([order(17) | {"score": 5.700000000000001}, order(ROWS) | {"name": None}])
    lake.orders.write([order(ROWS - 50) | {"id": 10**15}])
    lake.orders.delete([order(100)])
    lake.odd.write([named(5) | {"note": None}, named(7) | {"region": "A"}])
    lake.odd.delete([named(11)])
    document = compared(capsys, lake, server, "--repair-hint", code=1)
    results = {table["table"]: table for table in document["tables"]}
    assert {
        (difference["kind"], difference["key"]["id"])
        for difference in results["ods.orders"]["differences"]
    } == {
        ("different", "51"),
        ("different", str(2**64 - 1)),
        ("extra", str(10**15)),
        ("missing", "300"),
    }
    assert {
        (difference["kind"], difference["key"]["region"], difference["key"]["n"])
        for difference in results["ods.odd"]["differences"]
    } == {("different", "b%", "5"), ("extra", "A", "7"), ("missing", "b%", "11")}
    [statement] = [hint for hint in document["repair_hints"] if "odd: else" in hint]
    signal = statement.partition("\n")[2]
    server.run(
        "CREATE TABLE shop.debezium_signal (id varchar(42), type varchar(32), data text)",
        "USE shop",
        signal,
    )
    [(data,)] = server.run("SELECT data FROM shop.debezium_signal")
    condition = json.loads(data)["additional-conditions"][0]["filter"]
    rows = server.run(f"SELECT region, n FROM shop.`odd %s` WHERE {condition} ORDER BY n")
    assert rows == [("b%", 5), ("b%", 11)]


def test_an_interrupted_comparison_goes_on_where_it_was(
    lake: Lake, server: MariaDbServer, tmp_path: Path, capsys: Capture
) -> None:
    lake.orders.delete([order(3)])
    lake.odd.delete([named(11)])
    file = tmp_path / "progress"
    words = ("--page-rows", "120", "--progress-file", str(file))
    ranges = check_resumption(file, lambda: compared(capsys, lake, server, *words, code=1))
    assert ranges == 6


def test_the_database_reads_no_more_rows_than_the_rate(
    lake: Lake, server: MariaDbServer, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.orders.delete([order(3)])
    lake.odd.delete([named(11)])
    time = Clock(0.0)
    monkeypatch.setattr(pipeline_compare, "Throttle", lambda rate: Throttle(rate, time, time.sleep))
    server.run("SET GLOBAL userstat = 1", "FLUSH TABLE_STATISTICS")
    compared(capsys, lake, server, "--rows-per-second", "100", code=1)
    [(read,)] = server.run(
        "SELECT sum(rows_read) FROM information_schema.table_statistics WHERE table_schema = 'shop'"
    )
    assert 4 * ROWS < read <= 100 * (time.now + 1)


def test_a_page_reads_as_many_rows_as_it_has(
    lake: Lake, server: MariaDbServer, connection: Connection
) -> None:
    """Composite keys use the index: the condition is a range, not a scan."""
    columns, values = ["`region`", "`n`"], ["%s", "cast(%s AS signed)"]
    low, low_values = connection.dialect.bound(columns, ">", values, ("a", "100"))
    high, high_values = connection.dialect.bound(columns, "<=", values, ("a", "130"))
    sql = f"EXPLAIN SELECT count(*) FROM shop.`odd %%s` WHERE {low} AND {high}"
    [row] = connection.query(sql, (*low_values, *high_values))
    assert (row[3], row[5]) == ("range", "PRIMARY")
    assert int(row[8]) < ROWS // 3


def test_keys_whose_order_and_comparison_differ_are_refused_by_name(
    tmp_path: Path, server: MariaDbServer, capsys: Capture
) -> None:
    lake = Lake(tmp_path, server)
    server.run("CREATE TABLE shop.sizes (n enum('b','a'), note text, PRIMARY KEY (n))")
    warehouse = paimon.open_warehouse(str(tmp_path / "lake"))
    fields = pa.schema([pa.field("n", pa.string(), nullable=False), ("note", pa.string())])
    options = {"bucket": "1", "ingestd.pipelines": "shop"}
    table = warehouse.create("ods.sizes", fields, primary_keys=["n"], options=options)
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest")
    record(table.files, QualifiedSourceTable("shop", "shop", None, "sizes"))
    done = run_command(capsys, *words, "sizes")
    assert done.code == 2
    assert "keys of the type enum('b','a') cannot be compared" in done.err


def test_rows_longer_than_a_packet_are_refused(
    lake: Lake, server: MariaDbServer, capsys: Capture
) -> None:
    server.run(
        "ALTER TABLE shop.orders MODIFY name longtext",
        "UPDATE shop.orders SET name = repeat('x', 16 * 1024 * 1024 - 20) WHERE id = 3",
    )
    document = compared(capsys, lake, server, code=0)
    assert document["not_compared"] == [
        {
            "table": "ods.orders",
            "reason": "shop.orders has rows longer than max_allowed_packet of the server",
        }
    ]


def test_a_statement_changes_nothing_and_ends_at_its_limit(server: MariaDbServer) -> None:
    with closing(connect(server.url, 1)) as connection:
        with pytest.raises(SourceError, match="READ ONLY"):
            connection.query("CREATE TABLE shop.more (id int)")
        with pytest.raises(SourceError, match="raise --statement-timeout"):
            connection.query("SELECT sleep(9)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda url: url.removesuffix("/shop"), "name the database in the URL"),
        (lambda url: f"{url}?sslmode=require", "parameter sslmode is not known"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(
    change: Callable[[str], str], message: str, server: MariaDbServer
) -> None:
    with (
        pytest.raises(ConfigError, match=message),
        closing(connect(change(server.url), 5)) as connection,
    ):
        connection.dialect.read_server(connection)

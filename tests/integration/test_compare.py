"""`ingestd compare` with a real PostgreSQL: what is equal, and what differs by key."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

import ingestd.paimon as paimon
from ingestd.compare import pipeline_compare
from ingestd.compare.column_pairs import DatabaseTable
from ingestd.compare.drivers import Connection, connect
from ingestd.compare.source_table import read_source_table
from ingestd.compare.throttle import Throttle
from ingestd.errors import SourceError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    encode_pipeline,
    encode_properties,
)
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, SetOption
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.clock import Clock
from tests.support.code_blocks import code_blocks
from tests.support.command_line import run_command
from tests.support.native_tables import alter
from tests.support.postgres_client import PostgresClient
from tests.support.postgres_server import PostgresServer, is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not is_supported(), reason="PostgreSQL is fetched for Linux on x86-64 only"),
]
Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
ROWS = 400


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture
def client(server: PostgresServer) -> Iterator[PostgresClient]:
    with server.connect() as connected:
        connected.run("DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop")
        yield connected


CONFIG = """\
pipeline: {{name: shop}}
warehouse: {{path: {lake}, database: ods}}
sources:
  shop: {{kafka: {{bootstrap.servers: 'nowhere:9092'}}, topics: [orders], format: debezium-json}}
"""
ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("note", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("score", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("loaded", pa.string()),
    ]
)
BRANCHES = pa.schema(
    [
        pa.field("code", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        ("note", pa.string()),
    ]
)
TABLES = """
CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text, price numeric(10,2), at timestamptz,
  score double precision, tags text[], twice numeric GENERATED ALWAYS AS (price * 2) STORED,
  place point);
INSERT INTO shop.orders SELECT i * 3, 'note ' || i, i / 7.0,
  timestamptz '2026-01-01' + i * interval '1 h', i / 3.0, ARRAY['a', NULL, i::text]
  FROM generate_series(-100, {rows}) i;
CREATE TABLE shop.branches (code char(4), number int, note text, PRIMARY KEY (code, number));
INSERT INTO shop.branches SELECT lpad((i % 7)::text, 2, 'x'), i, 'b' || i
  FROM generate_series(1, {rows}) i;
"""


class Lake:
    """A warehouse with the rows of two tables of the database, and a configuration."""

    def __init__(self, folder: Path, client: PostgresClient) -> None:
        client.run(TABLES.format(rows=ROWS))
        self.config = folder / "ingestd.yaml"
        self.config.write_text(CONFIG.format(lake=folder / "lake"))
        warehouse = paimon.open_warehouse(str(folder / "lake"))
        options = {"bucket": "2", "ingestd.pipelines": "shop"}
        self.orders = warehouse.create("ods.orders", ORDERS, primary_keys=["id"], options=options)
        self.orders.write([order(number) for number in range(-100, ROWS + 1)])
        self.branches = warehouse.create(
            "ods.branches", BRANCHES, primary_keys=["number", "code"], options=options
        )
        self.branches.write([branch(number) for number in range(1, ROWS + 1)])
        record(self.orders.files, QualifiedSourceTable("shop", "postgres", "shop", "orders"))
        record(self.branches.files, QualifiedSourceTable("shop", "other", "shop", "branches"))


def record(table: FileStoreTable, source_table: QualifiedSourceTable, number: int = 1) -> None:
    """Commit a progress record that names the source table."""
    progress = TableProgress(PipelineProgress(), source_tables=frozenset([source_table]))
    properties = encode_properties("shop", progress, encode_pipeline(progress.pipeline))
    committable = ManifestCommittable(number, (), properties=properties)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    commit(table, "shop", committable, state=load_state(table), now_ms=now_ms, allow_empty=True)


def order(number: int) -> dict[str, Any]:
    exact = Decimal(number) / 7
    return {
        "id": number * 3,
        "note": f"note {number}",
        "price": exact.quantize(Decimal("0.01"), "ROUND_HALF_UP"),
        "at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        "score": float(Decimal(number) / 3),
        "tags": ["a", None, str(number)],
        "loaded": "by hand",
    }


def branch(number: int) -> dict[str, Any]:
    return {"code": f"{number % 7}".rjust(2, "x").ljust(4), "number": number, "note": f"b{number}"}


@pytest.fixture
def lake(tmp_path: Path, client: PostgresClient) -> Lake:
    return Lake(tmp_path, client)


def compared(
    capsys: Capture, lake: Lake, server: PostgresServer, *more: str, code: int
) -> Mapping[str, Any]:
    """The result of a comparison of both tables, a few rows at a time."""
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest", "--json")
    pairs = ("orders=shop.orders", "branches=shop.branches", "--page-rows", "60")
    done = run_command(capsys, *words, *pairs, *more)
    assert done.code == code, done.err
    return {table["table"]: table for table in json.loads(done.out)["tables"]}


def test_equal_tables_are_equal_and_what_was_not_compared_is_named(
    lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    found = compared(capsys, lake, server, code=0)
    assert [value["rows"] for value in found.values()] == [ROWS + 101, ROWS]
    assert [value["compared_by"] for value in found.values()] == ["key-ranges", "key-hashes"]
    assert {
        one["column"]: one["reason"] for one in found["ods.orders"]["columns_not_compared"]
    } == {
        "loaded": "not in the source",
        "place": "not in the table of the lake",
        "twice": "generated columns are not in the change stream",
    }


def test_one_row_changed_one_deleted_and_one_added_are_found_by_key(
    lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    changed = order(17) | {"note": "other", "score": 1.5}
    lake.orders.write([changed, order(ROWS + 50)])
    lake.orders.delete([order(-100)])
    lake.branches.write([branch(5) | {"note": None}, branch(7) | {"number": 4711}])
    lake.branches.delete([branch(11)])
    found = compared(capsys, lake, server, code=1)
    rows = {
        (difference["kind"], difference["key"]["id"]): difference
        for difference in found["ods.orders"]["differences"]
    }
    assert rows.keys() == {("missing", "-300"), ("different", "51"), ("extra", "1350")}
    assert rows["different", "51"]["source"] == {"note": "note 17", "score": "5.666666666666667"}
    assert rows["different", "51"]["lake"] == {"note": "other", "score": "1.5"}
    assert rows["missing", "-300"]["lake"] is None
    assert rows["extra", "1350"]["lake"]["at"] == "2026-01-19T18:00:00.000000Z"
    branches = found["ods.branches"]
    assert [branches[kind] for kind in ("missing", "extra", "different")] == [1, 1, 1]
    assert {difference["key"]["number"] for difference in branches["differences"]} == {
        "5",
        "11",
        "4711",
    }


def test_every_single_falsified_row_is_found(
    lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    dice = random.Random(5)
    for number in dice.sample(range(-100, ROWS + 1), 8):
        lake.orders.write([order(number) | {"tags": ["a", "", str(number)]}])
        found = compared(capsys, lake, server, code=1)["ods.orders"]["differences"]
        assert [(one["kind"], one["key"]) for one in found] == [
            ("different", {"id": str(number * 3)})
        ]
        lake.orders.write([order(number)])
    compared(capsys, lake, server, code=0)


def test_an_interrupted_comparison_goes_on_where_it_was(
    lake: Lake, server: PostgresServer, tmp_path: Path, capsys: Capture
) -> None:
    lake.orders.delete([order(3)])
    file = tmp_path / "progress"
    words = ("--page-rows", "200", "--progress-file", str(file))
    ranges = check_resumption(file, lambda: compared(capsys, lake, server, *words, code=1))
    assert ranges == 6


def check_resumption(file: Path, run: Callable[[], object]) -> int:
    """Interrupt a comparison of two tables after each line of its progress file.

    Each resumed one must have the result and the file of the first. Returns the number of ranges.
    """
    whole = run()
    lines = file.read_bytes().splitlines(keepends=True)
    for kept, line in enumerate(lines):
        file.write_bytes(b"".join(lines[:kept]) + line[: len(line) // 2])
        assert run() == whole
        assert file.read_bytes().splitlines(keepends=True) == lines
    return len(lines) - 3  # the header and two results


def test_the_database_reads_no_more_rows_than_the_rate(
    lake: Lake, server: PostgresServer, client: PostgresClient, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    lake.orders.delete([order(3)])
    lake.branches.delete([branch(7)])
    time = Clock(0.0)
    monkeypatch.setattr(pipeline_compare, "Throttle", lambda rate: Throttle(rate, time, time.sleep))
    began = time.now
    compared(capsys, lake, server, "--rows-per-second", "100", code=1)
    client.run("SELECT pg_stat_force_next_flush()")
    [[read]] = client.run(ROWS_READ)
    assert 2 * (2 * ROWS + 101) < int(read) <= 100 * (time.now - began + 1)


ROWS_READ = """
SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'shop')
  + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'shop')
"""


def test_the_limit_ends_a_table_and_hints_name_the_rows(
    lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    lake.orders.write([order(number) | {"note": None} for number in range(50)])
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest")
    done = run_command(capsys, *words, "orders=shop.orders", "--limit", "5", "--repair-hint")
    assert (done.code, "stopped at --limit" in done.out) == (1, True)
    assert "execute-snapshot" in done.out
    assert "id=0" in done.out


def test_the_commands_of_the_page_compare_tables(
    lake: Lake, server: PostgresServer, tmp_path: Path, capsys: Capture, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    [block] = [
        code_block
        for code_block in code_blocks(ROOT / "docs" / "compare.md")
        if "ingestd" in code_block.first
    ]
    of_all, of_one, named = (line.split()[1:] for line in block.text.splitlines())
    for words in ([*of_all, "--as-of", "latest"], [*of_one, "--as-of", "2100-01-01T00:00"]):
        done = run_command(capsys, *for_the_test(words, server))
        assert (done.code, "ods.orders" in done.out, "equal" in done.out) == (0, True, True), done
    other = "ods.branches: not compared: its source table shop:other.shop.branches is in another"
    assert other in run_command(capsys, *for_the_test(of_all, server), "--as-of", "latest").out
    done = run_command(capsys, *for_the_test(named, server))
    assert (done.code, json.loads(done.out)["tables"][0]["differences"]) == (0, [])


def test_tables_that_only_one_side_has_are_named(
    lake: Lake, server: PostgresServer, client: PostgresClient, capsys: Capture
) -> None:
    client.run("CREATE TABLE shop.coupons (id int PRIMARY KEY)")
    record(lake.branches.files, QualifiedSourceTable("shop", "postgres", "shop", "gone"), 2)
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest")
    done = run_command(capsys, *words, "--json")
    document = json.loads(done.out)
    assert (done.code, [table["table"] for table in document["tables"]]) == (0, ["ods.orders"])
    [left_out] = document["not_compared"]
    assert (left_out["table"], "no table shop.gone" in left_out["reason"]) == ("ods.branches", True)
    assert document["only_in_source"] == ["shop.branches", "shop.coupons"]
    assert "shop.coupons: only in the source" in run_command(capsys, *words).out
    done = run_command(capsys, *words, "orders=shop.orders", "--json")
    assert json.loads(done.out)["only_in_source"] == []


def test_rows_that_are_kept_after_their_deletion_are_not_compared(
    lake: Lake, server: PostgresServer, client: PostgresClient, capsys: Capture
) -> None:
    with lake.config.open("a") as file:
        file.write("tables: {orders: {on-delete: keep, deleted-at: gone_at}}\n")
    compared(capsys, lake, server, code=0)  # the column comes with the first deletion
    table = alter(lake.orders.files, AddColumn(("gone_at",), parse_type("TIMESTAMP_LTZ(3)")))
    record(table, QualifiedSourceTable("shop", "postgres", "shop", "orders"), 2)
    orders = paimon.open_warehouse(str(lake.config.parent / "lake")).table("ods.orders")
    client.run("DELETE FROM shop.orders WHERE id IN (0, 3, 6)")
    kept = [order(number) | {"gone_at": datetime(2026, 2, 1, tzinfo=UTC)} for number in range(3)]
    orders.write([*kept[:2], order(9) | {"gone_at": None}])
    [difference] = compared(capsys, lake, server, code=1)["ods.orders"]["differences"]
    assert (difference["kind"], difference["key"]) == ("extra", {"id": "6"})
    orders.write([kept[2], order(5) | {"gone_at": datetime(2026, 2, 1, tzinfo=UTC)}])
    [difference] = compared(capsys, lake, server, code=1)["ods.orders"]["differences"]
    assert (difference["kind"], difference["key"]) == ("missing", {"id": "15"})


def test_rows_that_a_truncate_left_are_counted_and_other_rows_compared(
    lake: Lake, server: PostgresServer, client: PostgresClient, capsys: Capture
) -> None:
    with lake.config.open("a") as file:
        file.write("tables: {orders: {on-truncate: ignore}, branches: {on-truncate: ignore}}\n")
    client.run("DELETE FROM shop.orders WHERE id > 30; DELETE FROM shop.branches WHERE number > 9")
    lake.orders.write([order(3) | {"note": "by hand"}])
    lake.branches.delete([branch(7)])
    found = compared(capsys, lake, server, "--limit", "5", code=1)
    assert [result["kept"] for result in found.values()] == [ROWS - 10, ROWS - 9]
    assert [
        [(one["kind"], *one["key"].values()) for one in result["differences"]]
        for result in found.values()
    ] == [[("different", "9")], [("missing", "x0", "7")]]
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest")
    shown = run_command(capsys, *words, "orders=shop.orders").out
    assert f"ods.orders: {ROWS - 10} rows only in the lake not compared: on-truncate" in shown


def test_tables_whose_options_keep_or_drop_rows_are_named(
    lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest")
    pairs = ("orders=shop.orders", "branches=shop.branches")
    expiry = {"record-level.time-field": "at", "record-level.expire-time": "1 d"}
    for table, options in ((lake.orders, expiry), (lake.branches, {"ignore-delete": "true"})):
        alter(table.files, *(SetOption(name, value) for name, value in options.items()))
    done = run_command(capsys, *words, *pairs)
    for option in ("record-level.expire-time", "ignore-delete"):
        assert f"{option} keeps or drops rows regardless of the source" in done.err, done
    assert done.code == 2


def test_the_result_is_a_file_for_the_textfile_collector(
    lake: Lake, server: PostgresServer, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "compare.prom"
    file.write_text("the last one")
    words = ("compare", "-c", lake.config, "--source", server.url, "--as-of", "latest")
    began = datetime.now(UTC).timestamp()
    lake.orders.delete([order(3)])
    assert run_command(capsys, *words, "--metrics-file", file).code == 1
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
    }
    ended = samples.pop(("ingestd_compare_last_timestamp_seconds", "shop"))
    assert began <= ended <= datetime.now(UTC).timestamp()
    assert samples == {
        ("ingestd_compare_rows", "missing", "shop", "ods.orders"): 1,
        ("ingestd_compare_rows", "extra", "shop", "ods.orders"): 0,
        ("ingestd_compare_rows", "different", "shop", "ods.orders"): 0,
        ("ingestd_compare_rows", "moving", "shop", "ods.orders"): 0,
        ("ingestd_compare_rows", "kept", "shop", "ods.orders"): 0,
        ("ingestd_compare_tables_not_compared", "shop"): 1,
    }
    assert list(tmp_path.glob("*.prom*")) == [file]
    done = run_command(capsys, *words, "branches", "--metrics-file", file)
    assert (done.code, "ingestd_compare_rows{" in file.read_text()) == (2, False)
    for path, reason in (("x.txt", "end with .prom"), ("no/x.prom", "is not a folder")):
        done = run_command(capsys, *words, "--metrics-file", tmp_path / path)
        assert (done.code, reason in done.err) == (2, True), done.err


def for_the_test(words: Sequence[str], server: PostgresServer) -> list[str]:
    others = {"orders=public.orders": "orders=shop.orders"}
    return [
        server.url if word.startswith("postgresql:") else others.get(word, word) for word in words
    ]


def test_a_difference_waits_for_the_stream(
    lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    words = ("compare", "-c", lake.config, "--source", server.url, "orders", "--slot", "x")
    assert run_command(capsys, *words).code == 0
    lake.orders.delete([order(0)])
    done = run_command(capsys, *words)
    assert (done.code, "has no slot x; its logical slots: none" in done.err) == (2, True)


@pytest.mark.parametrize("side", ["source", "lake"])
def test_a_table_whose_columns_change_meanwhile_is_compared_again(
    side: str, lake: Lake, server: PostgresServer, client: PostgresClient, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    changes = [change_of(side, lake, client)]

    def read_then_change(connection: Connection, schema: str, name: str) -> DatabaseTable:
        table = read_source_table(connection, schema, name)
        if changes:
            changes.pop()()
        return table

    monkeypatch.setattr(pipeline_compare, "read_source_table", read_then_change)
    words = ("compare", "-c", lake.config, "--source", server.url, "orders", "--json")
    done = run_command(capsys, *words, "--as-of", "latest")
    [found] = json.loads(done.out)["tables"]
    assert (done.code, changes) == (0, [])
    others = {one["column"]: one["reason"] for one in found["columns_not_compared"]}
    if side == "source":
        assert (others["remark"], others["note"]) == (
            "not in the table of the lake", "not in the source"
        )  # fmt: skip
    else:
        assert others["extra"] == "not in the source"


def change_of(side: str, lake: Lake, client: PostgresClient) -> Callable[[], object]:
    if side == "source":
        return lambda: client.run("ALTER TABLE shop.orders RENAME note TO remark")

    def add_a_column() -> None:
        table = alter(lake.orders.files, AddColumn(("extra",), parse_type("INT")))
        record(table, QualifiedSourceTable("shop", "postgres", "shop", "orders"), 2)

    return add_a_column


def test_statements_are_read_only_and_bounded(server: PostgresServer) -> None:
    connection = connect(server.url, 0.2)
    with pytest.raises(SourceError, match="read-only transaction"):
        connection.query("CREATE TABLE nothing (id int)")
    with pytest.raises(SourceError, match="raise --statement-timeout"):
        connection.query("SELECT pg_sleep(5)")
    connection.close()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["--source", "postgresql://postgres:secret@127.0.0.1:1/postgres"],
            3,
            "127.0.0.1:1/postgres",
        ),
        (["--source", "oracle://127.0.0.1/postgres"], 2, "other databases cannot be compared"),
        (["--source", "postgresql://localhost:x/postgres"], 2, "a URL that cannot be read"),
        (["--as-of", "latest", "nothing"], 2, "has not written ods.nothing"),
        (["--as-of", "latest", "orders=shop.nothing"], 2, "the source has no table shop.nothing"),
        (["--as-of", "latest", "orders=orders"], 2, "write TABLE or TABLE=SCHEMA.TABLE"),
        (["--as-of", "2020-01-01", "orders"], 2, "no snapshot at or before that time"),
        (["--as-of", "latest", "orders=shop.branches"], 2, "is not that of shop.branches"),
    ],
)
def test_what_cannot_be_compared_says_why(
    words: list[str], code: int, message: str, lake: Lake, server: PostgresServer, capsys: Capture
) -> None:
    source = [] if "--source" in words else ["--source", server.url]
    done = run_command(capsys, "compare", "-c", lake.config, *source, *words)
    assert (done.code, message in done.err) == (code, True), done.err
    assert "secret" not in done.err

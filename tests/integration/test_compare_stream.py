"""`ingestd compare` of a table whose records are in a real Kafka log, with a real PostgreSQL."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.cdc.base import SourceTable
from ingestd.compare import catch_up
from ingestd.compare.lake_table import LakeReader
from ingestd.dev.broker import DevBroker
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.tables.log_positions import Position, TopicName
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    encode_pipeline,
    encode_properties,
)
from ingestd.kafka.offsets import OffsetClient
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.change_events import event, key
from tests.support.command_line import Done, run_command
from tests.support.kafka_broker import delete_records, fresh_topic, produce, source_of
from tests.support.postgres_client import PostgresClient
from tests.support.postgres_server import PostgresServer, is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not is_supported(), reason="PostgreSQL is fetched for Linux on x86-64 only"),
]
Capture = pytest.CaptureFixture[str]
CONFIG = """\
pipeline: {{name: shop}}
warehouse: {{path: {lake}, database: ods}}
sources:
  shop: {{kafka: {{bootstrap.servers: '{bootstrap}'}}, topics: [{topic}], format: debezium-json}}
"""
ORDERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("note", pa.string())])
PARTITIONS = 2
IN_SOURCE = SourceTable("postgres", "shop", "orders")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture
def client(server: PostgresServer) -> Iterator[PostgresClient]:
    with server.connect() as connected:
        connected.run("DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop")
        connected.run("CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text)")
        yield connected


@dataclass
class Stream:
    """A table in the source, its records in a topic, and the table of the lake that has them."""

    folder: Path
    broker: DevBroker
    server: PostgresServer
    client: PostgresClient
    ends: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))
    commits: int = 0

    def __post_init__(self) -> None:
        self.topic = fresh_topic(self.broker, PARTITIONS)
        self.config = self.folder / "ingestd.yaml"
        lake, bootstrap = self.folder / "lake", self.broker.bootstrap
        self.config.write_text(CONFIG.format(lake=lake, bootstrap=bootstrap, topic=self.topic))
        with closing(OffsetClient(source_of(self.broker, self.topic))) as offsets:
            self.topic_key = offsets.topic_keys([self.topic])[self.topic]
            self.cluster = offsets.cluster_id()
        options = {"bucket": "1", "ingestd.pipelines": "shop"}
        self.orders = paimon.open_warehouse(str(lake)).create(
            "ods.orders", ORDERS, primary_keys=["id"], options=options
        )

    def fill(self, numbers: range) -> None:
        """Write rows to the source and the lake, before the stream begins."""
        self.client.run(
            "INSERT INTO shop.orders SELECT i, 'note ' || i "
            f"FROM generate_series({numbers[0]}, {numbers[-1]}) i"
        )
        self.orders.write([{"id": number, "note": f"note {number}"} for number in numbers])
        self.cover()

    def put(self, number: int, note: str) -> None:
        """Write a row to the source, the topic and the lake."""
        self.client.run(
            f"INSERT INTO shop.orders VALUES ({number}, '{note}') "
            "ON CONFLICT (id) DO UPDATE SET note = excluded.note"
        )
        row = {"id": number, "note": note}
        self.send(event("c", row, table=IN_SOURCE), number)
        self.orders.write([row])

    def delete(self, number: int) -> None:
        """Delete a row in the source, the topic and the lake."""
        self.client.run(f"DELETE FROM shop.orders WHERE id = {number}")
        before = {"id": number, "note": None}
        self.send(event("d", before=before, table=IN_SOURCE), number)
        self.orders.delete([before])

    def send(self, message: bytes, number: int) -> None:
        """Append a record with the key of a row to its partition."""
        partition = number % PARTITIONS
        produce(self.broker, self.topic, [(key(id=number), message)], partition)
        self.ends[partition] += 1

    def cover(self) -> None:
        """Commit a progress record: the lake has all records."""
        self.commits += 1
        pipeline = PipelineProgress(
            end={self.topic_key: {where: Position(end) for where, end in self.ends.items()}},
            topics={self.topic_key: TopicName(self.topic, "shop", self.cluster)},
        )
        progress = TableProgress(
            pipeline,
            topic_keys=frozenset([self.topic_key]),
            source_tables=frozenset([QualifiedSourceTable("shop", *IN_SOURCE)]),
        )
        properties = encode_properties("shop", progress, encode_pipeline(pipeline))
        table = self.orders.files
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        committable = ManifestCommittable(self.commits, (), properties=properties)
        commit(table, "shop", committable, state=load_state(table), now_ms=now_ms, allow_empty=True)

    def compare(self, capsys: Capture, *more: str) -> Done:
        """Run the command; the connector is taken to be done at once."""
        words = ("compare", "-c", self.config, "--source", self.server.url)
        words += ("--connector-delay", "0")
        return run_command(capsys, *words, *more)


@pytest.fixture
def stream(
    tmp_path: Path, broker: DevBroker, server: PostgresServer, client: PostgresClient
) -> Stream:
    return Stream(tmp_path, broker, server, client)


def newest_by_id(document: Mapping[str, Any]) -> dict[str, Any]:
    [result] = document["tables"]
    return {
        difference["key"]["id"]: difference["newest_record"] for difference in result["differences"]
    }


def test_the_newest_record_of_a_differing_key_is_named(stream: Stream, capsys: Capture) -> None:
    for number in range(8):
        stream.put(number, "first")
    stream.put(2, "second")
    stream.delete(3)
    stream.cover()
    done = stream.compare(capsys, "--json")
    assert (done.code, json.loads(done.out)["tables"][0]["records_searched"]) == (0, 0), done.err

    stream.orders.write([{"id": 2, "note": "by hand"}, {"id": 3, "note": "by hand"}])
    stream.orders.write([{"id": 77, "note": "by hand"}])
    stream.orders.delete([{"id": 5, "note": None}])
    found = json.loads(stream.compare(capsys, "--json").out)
    assert newest_by_id(found) == {
        "2": {"topic": stream.topic, "partition": 0, "offset": 4},
        "3": {"topic": stream.topic, "partition": 1, "offset": 4},
        "5": {"topic": stream.topic, "partition": 1, "offset": 2},
        "77": None,
    }
    assert found["tables"][0]["records_searched"] == 10
    shown = stream.compare(capsys)
    assert f"{stream.topic}, partition 1, offset 2" in shown.out
    assert "not found" in shown.out
    assert "ods.orders: newest records searched in 10 records" in shown.out

    found = json.loads(stream.compare(capsys, "--json", "--search-records", "4").out)
    assert {number for number, record in newest_by_id(found).items() if record} == {"2", "3"}
    delete_records(stream.broker, stream.topic, 5, 1)
    found = json.loads(stream.compare(capsys, "--json").out)
    assert {number for number, record in newest_by_id(found).items() if record} == {"2"}
    found = json.loads(stream.compare(capsys, "--json", "--as-of", "latest").out)
    assert set(newest_by_id(found).values()) == {None}


def found_by_key(done: Done) -> set[tuple[str, int]]:
    [result] = json.loads(done.out)["tables"]
    return {
        (difference["kind"], int(difference["key"]["id"])) for difference in result["differences"]
    }


def falsify(stream: Stream, changed: int, deleted: int, added: int) -> set[tuple[str, int]]:
    """Change, delete and add a row in the lake only; return the differences that this makes."""
    stream.orders.write([{"id": changed, "note": "by hand"}, {"id": added, "note": "by hand"}])
    stream.orders.delete([{"id": deleted, "note": None}])
    return {("different", changed), ("missing", deleted), ("extra", added)}


def test_a_comparison_goes_on_at_any_range_while_the_source_moves(
    stream: Stream, tmp_path: Path, capsys: Capture
) -> None:
    dice, file = random.Random(24), tmp_path / "progress"
    stream.fill(range(60))
    expected = falsify(stream, changed=10, deleted=31, added=77)
    options = ("--json", "--page-rows", "7", "--progress-file", str(file))
    whole = stream.compare(capsys, *options)
    assert found_by_key(whole) == expected
    lines = file.read_bytes().splitlines(keepends=True)
    assert len(lines) == 11  # the header, 9 pages of at most 7 rows, and the result
    for kept, line in enumerate(lines):
        file.write_bytes(b"".join(lines[:kept]) + line[: dice.randrange(len(line))])
        moved = dice.choice([number for number in range(60) if number not in (10, 31)])
        stream.put(moved, f"moved {kept}")
        stream.cover()
        again = stream.compare(capsys, *options)
        assert (again.code, found_by_key(again)) == (1, expected), (kept, again.err)


def test_falsified_rows_are_found_by_key_while_changes_arrive(
    stream: Stream, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes arrive between the reads of both sides, at every look."""
    dice, held, arrived = random.Random(42), set[int](), list[int]()
    stream.fill(range(40))

    def arrive() -> None:
        for number in dice.sample(sorted(set(range(60)) - held), 2):
            if dice.random() < 0.3:
                stream.delete(number)
            else:
                stream.put(number, f"note {len(arrived)}")
            arrived.append(number)
        stream.cover()

    def after_changes(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            arrive()
            return function(*arguments)

        return run

    for reader, name in ((LakeReader, "digests"), (LakeReader, "rows"), (catch_up, "ask_logs")):
        monkeypatch.setattr(reader, name, after_changes(getattr(reader, name)))
    for number in range(3):
        changed, deleted, added = (*dice.sample(range(40), 2), 70 + number)
        held |= {changed, deleted}
        stream.put(changed, "right")
        stream.put(deleted, "right")
        stream.cover()
        expected = falsify(stream, changed, deleted, added)
        done = stream.compare(capsys, "--json", "--page-rows", "9")
        assert (done.code, found_by_key(done)) == (1, expected), done.err
        stream.orders.write([{"id": one, "note": "right"} for one in (changed, deleted)])
        stream.orders.delete([{"id": added, "note": None}])
    done = stream.compare(capsys, "--json", "--page-rows", "9")
    assert (done.code, found_by_key(done)) == (0, set()), done.err
    assert len(arrived) > 20


def test_a_row_that_is_inserted_and_deleted_during_every_look_is_moving(
    stream: Stream, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source lacks the row before and after each look, and the lake has it in between."""
    stream.fill(range(8))
    stream.put(50, "short")
    stream.cover()
    stream.client.run("DELETE FROM shop.orders WHERE id = 50")
    ask_logs, rows = catch_up.ask_logs, LakeReader.rows

    def after_insertion(clusters: Any) -> Any:
        stream.put(50, "short")
        stream.cover()
        return ask_logs(clusters)

    def before_deletion(reader: LakeReader, keys: Any) -> Any:
        found = rows(reader, keys)
        assert ("50",) in found
        stream.delete(50)
        stream.cover()
        return found

    monkeypatch.setattr(catch_up, "ask_logs", after_insertion)
    monkeypatch.setattr(LakeReader, "rows", before_deletion)
    done = stream.compare(capsys, "--json")
    [result] = json.loads(done.out)["tables"]
    assert (done.code, result["differences"], result["moving_keys"]) == (0, [], [{"id": "50"}])

"""Java Paimon takes a table over, hands it back, and all readers agree."""

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.pypaimon import Pypaimon

pytestmark = [pytest.mark.integration, pytest.mark.compat, pytest.mark.slow]


Rows = dict[int, str]
TABLES = {"dynamic": "-1", "fixed": "2"}
"""Tables, and their option `bucket`."""


def _records(
    table: str, ids: range, text: str, op: str = "c"
) -> list[tuple[bytes | None, bytes | None]]:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": table}
    records: list[tuple[bytes | None, bytes | None]] = []
    for number in ids:
        after = None if op == "d" else {"id": number, "text": f"{text} {number}"}
        event = {"before": None, "after": after, "source": {**source, "lsn": number}, "op": op}
        records.append((json.dumps({"id": number}).encode(), json.dumps(event).encode()))
    return records


@dataclass(frozen=True)
class Readers:
    """All who must agree on what a table holds."""

    warehouse: Path
    oracle: Oracle
    pypaimon: Pypaimon
    capsys: pytest.CaptureFixture[str]

    def agree(self, wanted: Rows) -> None:
        for table in TABLES:
            lines = self.oracle.read_lines(self.warehouse, DATABASE, table)
            assert {row["id"]: row["text"] for row in map(json.loads, lines)} == wanted
            assert self.oracle.fsck(self.warehouse, DATABASE, table) == []
            name = f"{DATABASE}.{table}"
            own = run_command(self.capsys, "read", self.warehouse, name, "--format", "jsonl")
            assert own.out.splitlines() == lines
            others = self.pypaimon.read(self.warehouse, DATABASE, table).to_pylist()
            assert {row["id"]: row["text"] for row in others} == wanted
            verified = run_command(self.capsys, "verify", self.warehouse, name)
            assert verified.code == 0, verified.out


def test_java_appends_and_compacts_and_ingestd_goes_on(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    pypaimon: Pypaimon,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prefix = f"j{uuid.uuid4().hex[:8]}"
    tables = {table: {"options": {"bucket": bucket}} for table, bucket in TABLES.items()}
    config = pipeline(tmp_path, broker.bootstrap, rf"{prefix}\..*", tables=tables)
    warehouse = tmp_path / "warehouse"
    readers = Readers(warehouse, oracle, pypaimon, capsys)
    for table in TABLES:
        broker.create_topic(f"{prefix}.{table}", 1)

    def ingest(*changes: tuple[range, str, str]) -> None:
        for table in TABLES:
            for ids, text, op in changes:
                produce(broker, f"{prefix}.{table}", _records(table, ids, text, op))
        catch_up(config, tmp_path)

    ingest((range(100), "first", "c"), (range(90, 100), "", "d"))
    wanted = {n: f"first {n}" for n in range(90)}
    readers.agree(wanted)

    java = [{"id": n, "text": f"java {n}"} for n in range(50, 150)]
    user = ("--user", "java", "--identifier", "1")
    for table in TABLES:
        oracle.append(warehouse, DATABASE, table, java, tmp_path, *user)
        oracle.compact(warehouse, DATABASE, table)
    wanted |= {n: f"java {n}" for n in range(50, 150)}
    readers.agree(wanted)

    ingest((range(120, 200), "second", "u"), (range(10), "", "d"))
    wanted |= {n: f"second {n}" for n in range(120, 200)}
    wanted = {n: text for n, text in wanted.items() if n >= 10}
    readers.agree(wanted)
    for table in TABLES:
        oracle.compact(warehouse, DATABASE, table)
    readers.agree(wanted)

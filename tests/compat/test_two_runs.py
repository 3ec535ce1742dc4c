"""Two runs of one pipeline with four tables; after each, other readers agree with what was sent.

Between the runs Java takes two of the tables over and hands them back.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.kafka_broker import Record, produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.pypaimon import Pypaimon

pytestmark = [pytest.mark.integration, pytest.mark.compat, pytest.mark.slow]

Row = dict[str, Any]
TAKEN_OVER = ("dynamic", "fixed")
TABLES: Mapping[str, Mapping[str, Any]] = {
    "dynamic": {"options": {"bucket": "-1"}},
    "fixed": {"options": {"bucket": "2"}},
    "moving": {"primary-keys": ["id"], "partition-keys": ["city"]},
    "changes": {"options": {"changelog-producer": "input", "changelog-file.format": "orc"}},
}
BATCH_ROWS = 200
"""Each run of about 500 events takes several batches of all topics."""


def _record(
    table: str, op: str, key: int, before: Row | None, after: Row | None, at: int
) -> Record:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": table, "lsn": at}
    event = {"before": before, "after": after, "source": source, "op": op}
    return json.dumps({"id": key}).encode(), json.dumps(event).encode()


@dataclass(frozen=True)
class Readers:
    """All who must agree on what a table holds."""

    warehouse: Path
    oracle: Oracle
    pypaimon: Pypaimon
    capsys: pytest.CaptureFixture[str]

    def sorted_rows(self, table: str) -> list[Row]:
        """The rows of a table by Java's reading, by key; the table must be without problems."""
        assert self.oracle.fsck(self.warehouse, DATABASE, table, "--all") == []
        rows = self.oracle.read(self.warehouse, DATABASE, table)
        return sorted(rows, key=lambda row: int(row["id"]))

    def agree(self, table: str, wanted: Mapping[int, str]) -> None:
        """Assert that every reader finds these texts."""
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


@dataclass
class TakenOver:
    """Tables that Java appends to and compacts between the runs, and after them."""

    wanted: dict[int, str] = field(default_factory=dict)

    def records(self, table: str, run: int) -> list[Record]:
        """The events of a run."""
        texts, gone = (range(100), range(90, 100)) if run == 0 else (range(120, 200), range(10))
        word, op = ("first", "c") if run == 0 else ("second", "u")
        return [
            *(_record(table, op, n, None, {"id": n, "text": f"{word} {n}"}, n) for n in texts),
            *(_record(table, "d", n, None, None, n) for n in gone),
        ]

    def check(self, readers: Readers, scratch: Path, run: int) -> None:
        """Let all read; Java appends rows after the first run, and compacts after both."""
        if run == 0:
            self.wanted = {n: f"first {n}" for n in range(90)}
        else:
            self.wanted |= {n: f"second {n}" for n in range(120, 200)}
            self.wanted = {n: text for n, text in self.wanted.items() if n >= 10}
        for table in TAKEN_OVER:
            readers.agree(table, self.wanted)
        java = [] if run else [{"id": n, "text": f"java {n}"} for n in range(50, 150)]
        self.wanted |= {row["id"]: row["text"] for row in java}
        user = ("--user", "java", "--identifier", "1")
        for table in TAKEN_OVER:
            if java:
                readers.oracle.append(readers.warehouse, DATABASE, table, java, scratch, *user)
            readers.oracle.compact(readers.warehouse, DATABASE, table)
            readers.agree(table, self.wanted)


@dataclass
class Moving:
    """A table whose keys move between partitions: a key has one row over all of them."""

    rows: dict[int, Row] = field(default_factory=dict)
    at: int = 0

    def records(self, run: int) -> list[Record]:
        """The events of a run: three changes of every key."""
        events = []
        for step in range(3):
            for key in range(40):
                self.at += 1
                old = self.rows.get(key)
                if old is not None and (key + step + run) % 7 == 0:
                    events.append(_record("moving", "d", key, old, None, self.at))
                    del self.rows[key]
                    continue
                row = {"id": key, "city": f"city {(key * (step + 1) + run) % 5}", "n": self.at}
                op = "c" if old is None else "u"
                events.append(_record("moving", op, key, old, row, self.at))
                self.rows[key] = row
        return events

    def check(self, readers: Readers) -> None:
        """Assert that Java finds the last row of every key."""
        wanted = [self.rows[key] for key in sorted(self.rows)]
        assert readers.sorted_rows("moving") == wanted

    def check_compacted(self, readers: Readers) -> None:
        """Assert that the table is right by our own reading, and after Java has compacted it."""
        verified = run_command(readers.capsys, "verify", readers.warehouse, f"{DATABASE}.moving")
        assert verified.code == 0, verified.out
        readers.oracle.compact(readers.warehouse, DATABASE, "moving")
        self.check(readers)


@dataclass
class Changes:
    """A table whose changelog is its input: Java's streaming reader is given every change."""

    random: Random = field(default_factory=lambda: Random(5))
    rows: dict[int, Row] = field(default_factory=dict)
    wanted: dict[int, list[tuple[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    at: int = 0

    def records(self) -> list[Record]:
        """The events of a run."""
        events = []
        for _ in range(150):
            self.at += 1
            key = self.random.randrange(20)
            old, new = self.rows.get(key), {"id": key, "n": self.at, "note": f"at {self.at}"}
            if old is None:
                events.append(_record("changes", "c", key, None, new, self.at))
                self.wanted[key].append(("+I", self.at))
            elif self.random.random() < 0.2:
                events.append(_record("changes", "d", key, old, None, self.at))
                self.wanted[key].append(("-D", old["n"]))
                del self.rows[key]
                continue
            else:
                events.append(_record("changes", "u", key, old, new, self.at))
                self.wanted[key] += [("-U", old["n"]), ("+U", self.at)]
            self.rows[key] = new
        return events

    def check(self, readers: Readers) -> None:
        """Assert that changes of a key are those of the source, in their order."""
        found: dict[int, list[tuple[str, Any]]] = defaultdict(list)
        changes = readers.oracle.changelog(readers.warehouse, DATABASE, "changes")
        for change in changes:
            assert change["note"] == f"at {change['n']}"
            found[change["id"]].append((change["rowkind"], change["n"]))
        assert found == self.wanted
        assert len({change["_snapshot"] for change in changes}) > 1
        assert readers.sorted_rows("changes") == [self.rows[key] for key in sorted(self.rows)]


def test_readers_agree_with_the_source_over_batches_restarts_and_a_takeover_by_java(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    pypaimon: Pypaimon,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prefix = f"r{uuid.uuid4().hex[:8]}.s"
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        prefix.replace(".", r"\.") + r"\..*",
        options={"dynamic-bucket.assigner-parallelism": "2"},
        tables=TABLES,
        batch_rows=BATCH_ROWS,
    )
    for table in TABLES:
        broker.create_topic(f"{prefix}.{table}", 1 if table in TAKEN_OVER else 2)
    readers = Readers(tmp_path / "warehouse", oracle, pypaimon, capsys)
    taken_over, moving, changes = TakenOver(), Moving(), Changes()
    for run in range(2):
        for table in TAKEN_OVER:
            produce(broker, f"{prefix}.{table}", taken_over.records(table, run))
        produce(broker, f"{prefix}.moving", moving.records(run))
        produce(broker, f"{prefix}.changes", changes.records())
        catch_up(config, tmp_path)
        taken_over.check(readers, tmp_path, run)
        moving.check(readers)
        changes.check(readers)
    moving.check_compacted(readers)

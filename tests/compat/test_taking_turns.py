"""Java and ingestd write to and compact one table, by turns and in the middle of each other's."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.errors import CommitConflictError
from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.incremental_read import change_fields, iter_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.native_tables import NOW_MS, native_table, rows_table, write
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

COLUMNS = [("k", "INT"), ("v", "STRING"), ("n", "BIGINT")]
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
VECTORS = {"deletion-vectors.enabled": "true"}
THIN = {"data-file.thin-mode": "true"}
LOOKUP = {"changelog-producer": "lookup"}
TABLES: list[dict[str, str]] = [
    {"bucket": "2"},
    {"bucket": "1", **SUMS, **LOOKUP},
    {"bucket": "2", **VECTORS},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "10"},
    {"bucket": "1", **SUMS, "changelog-producer": "full-compaction"},
    {"bucket": "2", **VECTORS, **LOOKUP},
    {"bucket": "2", "merge-engine": "partial-update", "file.format": "orc"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "7", **VECTORS},
    {"bucket": "1", **SUMS, "num-levels": "3"},
    {"bucket": "2", "target-file-size": "1 kb", **LOOKUP},
    {"bucket": "2", **THIN, **LOOKUP},
    {
        "bucket": "-1",
        "dynamic-bucket.target-row-num": "9",
        **THIN,
        **VECTORS,
        "file.format": "avro",
    },
]
COMMON = {"num-sorted-run.compaction-trigger": "3", "snapshot.num-retained.min": "100"}
STEPS = 8
KEYS = 24


class _Turns:
    """A table, what must be in it, and what both do to it."""

    def __init__(self, seed: int, folder: Path, oracle: Oracle) -> None:
        self.chance = Random(seed)
        self.oracle, self.folder = oracle, folder
        options = {**COMMON, **TABLES[seed]}
        self.sums = options.get("merge-engine") == "aggregation"
        self.hidden = "deletion-vectors.enabled" in options
        self.table = native_table(folder, COLUMNS, keys=["k"], options=options)
        self.expected: dict[int, tuple[str, int]] = {}
        self.number = 0
        self.log: list[str] = []

    def rows(self, parity: int) -> list[dict[str, Any]]:
        """Rows of even keys (ours) or odd ones: no one knows whose row of a key is the last.

        Sums need no order.
        """
        self.number += 1
        keys = [key for key in range(KEYS) if self.sums or key % 2 == parity]
        return [
            {"k": key, "v": f"v{key if self.sums else self.number}", "n": self.number}
            for key in sorted(self.chance.sample(keys, 6))
        ]

    def done(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            _, before = self.expected.get(row["k"], ("", 0))
            self.expected[row["k"]] = (row["v"], row["n"] + (before if self.sums else 0))

    def java_writes(self) -> None:
        rows, how = self.rows(1), self.chance.choice(["none", "auto", "full"])
        flags = ("--user", "java", "--identifier", self.number, "--compact", how)
        self.oracle.append(self.folder, "db", "t", rows, self.folder, *flags)
        self.done(rows)
        self.log.append(f"java writes, {how}")

    def java_compacts(self) -> None:
        self.oracle.compact(self.folder, "db", "t")
        self.log.append("java compacts")

    def java(self) -> None:
        self.chance.choice([self.java_writes, self.java_compacts])()

    def we_write(self, between: Callable[[], None] = lambda: None) -> None:
        rows, identifier = self.rows(0), self.number
        while True:
            state = load_state(self.table)
            typed = rows_table(self.table.schema, rows, state.max_sequence_number + 1)
            committable = ManifestCommittable(
                identifier, tuple(write(self.table, state, typed)), properties={}
            )
            between()
            try:
                commit(self.table, "ours", committable, state=state, now_ms=NOW_MS)
                break
            except CommitConflictError:
                # Only the assignment of keys to dynamic buckets is ours alone.
                assert self.table.options.bucket == -1
                self.log.append("refused")
                between = _nothing
        self.done(rows)
        self.log.append("we write")

    def we_compact(self, between: Callable[[], None] = lambda: None) -> None:
        full = self.chance.random() < 0.5

        def late(*arguments: Any, **named: Any) -> CommitResult:
            between()
            patch.undo()
            return commit(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ingestd.paimon.table.compact.table_compact.commit", late)
            result = compact_table(self.table, now_ms=NOW_MS, full=full)
        self.log.append(f"we compact: {result.status}")

    def step(self) -> None:
        turns: list[Callable[[], None]] = [
            self.java_writes, self.java_compacts, self.we_write, self.we_compact,
            lambda: self.we_write(self.java), lambda: self.we_compact(self.java),
        ]  # fmt: skip
        self.chance.choice(turns)()

    def check(self, *, compacted: bool = False) -> None:
        lines = sorted_json_lines(read_table(self.table), self.table.schema.fields)
        assert lines == self.oracle.read_lines(self.folder, "db", "t"), self.log
        if compacted or not self.hidden:
            found = {row["k"]: (row["v"], row["n"]) for row in map(json.loads, lines)}
            assert found == self.expected, self.log
        assert [one for one in verify(self.table) if one.severity == "error"] == [], self.log


def _nothing() -> None:
    """What happens in between when nothing does."""


@pytest.mark.parametrize("seed", range(len(TABLES)))
def test_both_hold_the_same_after_each_turn(seed: int, tmp_path: Path, oracle: Oracle) -> None:
    turns = _Turns(seed, tmp_path, oracle)
    turns.we_write()
    turns.java_writes()
    for _ in range(STEPS):
        turns.step()
        turns.check()
    turns.we_compact()
    turns.java_compacts()
    turns.check(compacted=True)
    fields = change_fields(turns.table)
    told = [line for part in iter_changelog(turns.table) for line in json_lines(part, fields)]
    assert [json.loads(line) for line in told] == oracle.changelog(tmp_path, "db", "t") != []
    # What was written and refused is left to the clean-up.
    orphans = [] if "refused" in turns.log else ["--orphans"]
    found = oracle.fsck(tmp_path, "db", "t", "--all", *orphans)
    assert [one for one in found if not one["code"].startswith("sequence")] == [], turns.log

"""The life of a table with random options, engine, buckets and producer, by a seed.

`tests/property/test_mixed_lives.py` runs it. Merge cases of `tests/support/merge_cases.py` meet
the options of the newer parts of the format; ingestd and both Javas write and compact, and after
each step all three read the same rows of the table, and of its branch.
"""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.spec.data_types import RowKind, parse_type
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.read.incremental_read import change_fields, iter_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.branches import create_branch, drop_branch, fast_forward
from ingestd.paimon.table.retention.done_partitions import mark_done_partitions
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.merge_cases import INTS, MAP, MergeCase, random_case, with_ages
from tests.support.moving_keys import Batch
from tests.support.native_tables import (
    NOW_MS,
    USER,
    alter,
    native_table,
    open_native,
    rows_table,
    write,
)
from tests.support.oracle import Oracle

STEPS = 7
DAY_MS = 86_400_000
TIMES = [1000, 2_000_000_000, 2_000_000_000, None]
"""Ages of rows in seconds: some have expired, others never do in these tests."""
BUCKETS: Mapping[str, dict[str, str]] = {
    "one": {"bucket": "1"},
    "fixed": {"bucket": "3"},
    "small files": {"bucket": "1", "target-file-size": "1 b"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    "postponed": {"bucket": "-2", "postpone.default-bucket-num": "2"},
    "moving": {"bucket": "-1"},
}
VECTORS = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}
INDEXES: Mapping[str, dict[str, str]] = {
    "bitmap": {"file-index.bitmap.columns": "k", "file-index.bitmap.k.version": "2"},
    "bitmap v1": {"file-index.bitmap.columns": "k", "file-index.bitmap.k.version": "1"},
    "bsi": {"file-index.bsi.columns": "k", "file-index.in-manifest-threshold": "1 b"},
    "range-bitmap": {"file-index.range-bitmap.columns": "k,day"},
    "bloom": {"file-index.bloom-filter.columns": "day"},
}
DONE = {
    "partition.mark-done-action": "success-file", "partition.time-interval": "1 d",
    "partition.idle-time-to-done": "1 h", "partition.mark-done-action.mode": "watermark",
}  # fmt: skip


class MixedLife:
    """One table in `folder`, and what has been done to it."""

    def __init__(self, seed: int, folder: Path, javas: tuple[Oracle, Oracle]) -> None:
        self.random, self.folder, self.javas = Random(seed), folder, javas
        self.done: list[str] = []
        self.buckets = self.random.choice(list(BUCKETS))
        self.case = self._case()
        self.table = native_table(
            folder, [("day", "STRING"), *self.case.columns], partitions=["day"],
            keys=["k"] if self.buckets == "moving" else ["day", "k"], options=self.case.options,
        )  # fmt: skip
        self.expires = "record-level.expire-time" in self.case.options
        self.watermark: int | None = None
        self.write()

    def _case(self) -> MergeCase:
        case = random_case(self.random)
        if self.random.random() < 0.4:
            case = with_ages(self.random, case, TIMES)
        chosen = {**case.options, **BUCKETS[self.buckets], **self._options(case.columns)}
        options = {k: v for k, v in chosen.items() if not _is_limit_of_keyed_rows(k, chosen)}
        producers = ["none", "none", "lookup", "full-compaction", "input"]
        options["changelog-producer"] = self.random.choice(producers)
        if self.buckets == "moving":
            for name in ("sequence.field", "sequence.field.sort-order"):
                options.pop(name, None)
            if "merge-engine" not in options:
                options.pop("ignore-delete", None)
        if self.buckets == "postponed" and options["changelog-producer"] == "input":
            options["changelog-producer"] = "lookup"
        if "deletion-vectors.enabled" in options:
            options["changelog-producer"] = self.random.choice(["none", "lookup"])
        batches = [[self._calm(case, row) for row in batch] for batch in case.batches]
        for batch in batches:
            batch[0]["_kind"] = 0  # a batch that the table ignores makes no snapshot
        return replace(case, options=options, batches=batches)

    def _options(self, columns: list[tuple[str, Any]]) -> dict[str, str]:
        """Options that say where and how files are written, and what is marked."""
        chosen = {"file.format": self.random.choice(["parquet", "parquet", "orc", "avro"])}
        if self.random.random() < 0.5:
            chosen |= VECTORS | {
                "deletion-vectors.bitmap64": self.random.choice(["true", "false"]),
                "index-file-in-data-file-dir": self.random.choice(["true", "false"]),
            }
        places: list[dict[str, str]] = [
            {}, {}, {"data-file.path-directory": "some/files"},
            {
                "data-file.external-paths": f"file://{self.folder}/a,file://{self.folder}/b",
                "data-file.external-paths.strategy": "round-robin",
            },
        ]  # fmt: skip
        chosen |= self.random.choice(places)
        for name in self.random.sample(list(INDEXES), self.random.randint(0, 2)):
            chosen |= INDEXES[name]
        maps = [name for name, t in columns if t == MAP]
        if maps and self.random.random() < 0.5:
            chosen["file-index.bloom-filter.columns"] = f"{maps[0]}[a],{maps[0]}[c]"
        thin = self.random.choice(["true", "false"])
        return chosen | DONE | {"data-file.thin-mode": thin, "manifest.merge-min-count": "3"}

    def _calm(self, case: MergeCase, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row without the cells of which Java 2.0 makes other values than 1.4.

        `tests/compat/test_merge_engines.py` has these cases.
        """
        day = row["k"] % 2 if self.buckets != "moving" else self.random.randrange(2)
        cells = {name: _calm_cell(row[name], t) for name, t in case.columns if name != "at"}
        for name in cells:
            if case.options.get(f"fields.{name}.aggregate-function") == "listagg":
                cells[name] = cells[name] or "c"
            limit = case.options.get(f"fields.{name}.count-limit")
            if limit and cells[name]:
                cells[name] = cells[name][: int(limit)]
        at = {"at": row["at"]} if "at" in row else {}
        return {"day": f"2024-01-0{1 + day}", **cells, **at, "k": row["k"], "_kind": row["_kind"]}

    # What may be done to a table.

    def step(self) -> None:
        """Do something, and compare."""
        steps = [
            self.write, self.write, self.java_writes, self.compact, self.java_compacts,
            self.add_column, self.rename_column, self.branch, self.mark_done, self.filter_by_key,
        ]  # fmt: skip
        taken = self.random.choice(steps)
        taken()
        if taken != self.filter_by_key:  # which only reads
            self.check()

    def write(self) -> None:
        """Commit a batch with a watermark, which may be an older one."""
        self._put(self.table)
        self.watermark = max(self.watermark or 0, self._last_watermark)

    def _put(self, table: FileStoreTable) -> None:
        rows = self.random.choice(self.case.batches)
        self.done.append(f"write {len(rows)} to {table.branch}")
        state = load_state(table)
        if self.buckets == "moving":
            messages = Batch(table).write(rows).messages
        else:
            typed = rows_table(table.schema, rows, state.max_sequence_number + 1)
            messages = tuple(write(table, state, typed))
        self._last_watermark = NOW_MS + self.random.randrange(-9, 9) * 365 * DAY_MS
        committable = ManifestCommittable(len(self.done), messages, self._last_watermark)
        commit(table, USER, committable, state=state, now_ms=NOW_MS)
        if self.buckets == "postponed":
            move_postponed(table, USER, state=load_state(table), now_ms=NOW_MS)

    def java_writes(self) -> None:
        """Let one of both write a batch."""
        if self.buckets in ("moving", "postponed"):
            return
        rows = self.random.choice(self.case.batches)
        lines = json_lines(rows_table(self.table.schema, rows), self.table.schema.fields)
        given = [
            {**json.loads(line), "_kind": RowKind(row["_kind"]).symbol}
            for line, row in zip(lines, rows, strict=True)
        ]
        java, how = self.random.randrange(2), self.random.choice(["none", "auto"])
        self.done.append(f"java {java} writes {len(rows)}, {how}")
        flags = ("--user", "java", "--identifier", len(self.done), "--compact", how)
        self.javas[java].append(self.folder, "db", "t", given, self.folder, *flags)

    def compact(self) -> None:
        """Compact; a full compaction leaves the rows that Java's leaves.

        Java's of postponed rows only moves waiting rows. It does not count where a compaction
        changes rows.
        """
        full, java = self.random.random() < 0.5, self.random.randrange(2)
        self.done.append(f"compact, full {full}")
        compares = full and not (self.buckets == "postponed" and self._changes_rows)
        theirs = self._as_java_compacts(java) if compares else []
        compact_table(self.table, now_ms=NOW_MS, full=full)
        if compares:
            _same(self.rows(self.table), theirs, self)

    def _as_java_compacts(self, java: int) -> list[str]:
        """The rows that a compaction by Java would leave; the table stays as it is."""
        kept = self.folder.with_name(f"{self.folder.name}-kept")
        shutil.copytree(self.folder, kept)
        self.javas[java].compact(self.folder, "db", "t")
        rows = self.rows(self.table)
        shutil.rmtree(self.folder)
        kept.rename(self.folder)
        return rows

    def java_compacts(self) -> None:
        """Let one of both compact everything; the rows are what they were."""
        before, java = self.rows(self.table), self.random.randrange(2)
        self.done.append(f"java {java} compacts")
        self.javas[java].compact(self.folder, "db", "t")
        if not self._changes_rows:
            _same(self.rows(self.table), before, self)

    def add_column(self) -> None:
        """Add a column, which no row fills."""
        self.done.append("add column")
        self.table = alter(self.table, AddColumn(f"e{len(self.done)}", parse_type("INT")))

    def rename_column(self) -> None:
        """Rename a column, and whatever names it."""
        case, old = self.case, self.random.choice([name for name, _ in self.case.columns[1:]])
        new = f"{old}_"
        self.done.append(f"rename {old}")
        self.table = alter(self.table, RenameColumn(old, new))

        def renamed(row: Mapping[str, Any]) -> dict[str, Any]:
            return {new if name == old else name: cell for name, cell in row.items()}

        self.case = replace(
            case,
            columns=[*renamed(dict(case.columns)).items()],
            options=dict(self.table.schema.options),
            unordered=tuple(renamed(dict.fromkeys(case.unordered))),
            batches=[[renamed(row) for row in batch] for batch in case.batches],
        )
        self.write()  # so that a branch begins with the new name

    def branch(self) -> None:
        """Write a branch that begins here, and forward the table to it, or drop it."""
        table = self.table
        snapshot = latest_snapshot(table.io, table.paths)
        assert snapshot is not None
        self.done.append("branch")
        create_tag(table, "fix", snapshot, now_ms=NOW_MS)
        create_branch(table, "fix", "fix")
        before = self.rows(table)
        branch = on_branch(table, "fix")
        self._put(branch)
        compact_table(branch, now_ms=NOW_MS, full=self.random.random() < 0.5)
        self._agree("t$branch_fix", branch)
        assert self.rows(table) == before, self
        published, watermark = self.rows(branch), self._last_watermark
        if forward := self.random.random() < 0.5:
            self.done.append("forward")
            fast_forward(table, "fix")
            self.watermark = max(self.watermark or 0, watermark)
        drop_branch(table, "fix")
        delete_tags(table, "fix")
        self.table = open_native(self.folder)
        if forward:
            assert self.rows(self.table) == published, self

    def mark_done(self) -> None:
        """Mark the partitions that the watermark has passed."""
        marked = mark_done_partitions(self.table, self.table.schema.options, NOW_MS)
        self.done.append(f"{len(marked)} done")

    def filter_by_key(self) -> None:
        """Read with a condition, which files are skipped by."""
        key = self.random.randrange(6)
        self.done.append(f"filter {key}")
        whole = [row for row in self._parsed(self.table) if row["k"] == key]
        predicate = parse_predicate(f"k = {key}", self.table.schema.fields)
        lines = sorted_json_lines(
            read_table(self.table, predicate=predicate), self.table.schema.fields
        )
        assert self.case.settled([json.loads(line) for line in lines]) == self.case.settled(whole)
        for java in self._readers:
            found = java.read(self.folder, "db", "t", "--filter", f"k={key}")
            _same(self.case.settled(found), self.case.settled(whole), self)

    # What is true at any time.

    def check(self) -> None:
        """Both Javas read the same rows, and the watermark never goes back."""
        self._agree("t", self.table)
        snapshot = latest_snapshot(self.table.io, self.table.paths)
        assert snapshot is not None
        assert snapshot.watermark == self.watermark, self

    def check_history(self) -> None:
        """Both Javas are given the same changes, and nothing is wrong with the files."""
        fields = change_fields(self.table)
        parts = iter_changelog(self.table)
        ours = [json.loads(line) for part in parts for line in json_lines(part, fields)]
        for java in self.javas:
            changes = java.changelog(self.folder, "db", "t")
            assert self.case.settled(changes) == self.case.settled(ours), self
            errors = [one for one in java.fsck(self.folder, "db", "t") if _is_error(one)]
            assert not errors, f"{errors}: {self}"

    def rows(self, table: FileStoreTable) -> list[str]:
        """The rows of the table or of its branch, such that they compare."""
        return self.case.settled(self._parsed(table))

    def __repr__(self) -> str:
        return f"{self.case.options}, {self.case.columns}: {self.done}"

    @property
    def _changes_rows(self) -> bool:
        """Whether a compaction changes what is read.

        Rows may expire. A compaction that looks up older rows merges also what was the only change
        of its key: an aggregation shows a row that has lost its cells, and `collect` drops what is
        equal; a group of a partial update has no cells if its sequence fields are null. `compact`
        compares these.
        """
        options = self.case.options
        grouped = any(name.endswith(".sequence-group") for name in options)
        return self.expires or grouped or options.get("merge-engine") == "aggregation"

    @property
    def _readers(self) -> tuple[Oracle, ...]:
        """The Javas that read all rows: with vectors, Java 1.4 shows only compacted ones."""
        hides = "deletion-vectors.enabled" in self.case.options
        return self.javas[1:] if hides else self.javas

    def _parsed(self, table: FileStoreTable) -> list[dict[str, Any]]:
        lines = sorted_json_lines(read_table(table), table.schema.fields)
        return [json.loads(line) for line in lines]

    def _agree(self, name: str, table: FileStoreTable) -> None:
        rows = self.rows(table)
        for java in self._readers:
            _same(self.case.settled(java.read(self.folder, "db", name)), rows, self)
        errors = [one for one in verify(table) if one.severity == "error"]
        assert not errors, f"{errors}: {self}"


def _same(found: list[str], expected: list[str], life: MixedLife) -> None:
    more, less = Counter(found) - Counter(expected), Counter(expected) - Counter(found)
    assert not more and not less, f"more {[*more]}, less {[*less]}: {life}"


def _is_error(problem: Mapping[str, Any]) -> bool:
    # A delete may take back a row's partition, which the file and its indexes then lack. Java
    # counts and looks up what it reads, which is the partition of the file; readers use no index
    # of a partition column.
    known = problem["message"].startswith(("value stats of day: null count", "index of day denies"))
    known = known or problem["code"].startswith("sequence")
    return problem["severity"] == "error" and not known


def _is_limit_of_keyed_rows(option: str, options: Mapping[str, str]) -> bool:
    # Once the limit is reached, Java 2.0 still replaces rows by their nested key, unlike 1.4:
    # tests/compat/test_merge_engines.py.
    column, _, name = option.rpartition(".")
    return name == "count-limit" and f"{column}.nested-key" in options


def _calm_cell(cell: Any, t: Any) -> Any:
    if isinstance(cell, int) and not isinstance(cell, bool) and t != "DATE":
        return cell % 2
    if isinstance(cell, float):
        return abs(cell)
    if isinstance(t, dict) and cell and t != INTS and isinstance(cell[0], dict):
        return list({row["id"]: row for row in cell}.values())
    return cell

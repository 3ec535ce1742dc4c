"""The life of a table whose schema changes, with columns of every type, by a seed.

`tests/property/test_evolved_lives.py` runs it. Keys, partitions and values of any type meet schema
changes of every kind, formats and statistics per level, file indexes, overwrites and expiry;
ingestd and both Javas write, compact and change the schema. After each step all three read the same
rows, and filters find what filtering all rows finds.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.predicate import (
    And,
    Comparison,
    IsIn,
    IsNull,
    Leaf,
    Like,
    Not,
    Or,
    matching,
)
from ingestd.paimon.table.commit.overwrite import drop_partitions, overwrite, truncate_table
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.index_entries import IndexEntries
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.point_read import PointReader
from ingestd.paimon.table.read.scan_options import scan_target
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.property.column_changes import ColumnChanges
from tests.support.native_tables import (
    NOW_MS,
    USER,
    native_table,
    open_native,
    put,
    rows_table,
    write,
)
from tests.support.oracle import Oracle

STEPS = 8
_NAN, _INF = float("nan"), float("inf")
_NANOS = [0, 10**18, -(10**18), 1_700_000_000_123_456_789, -1, 999]
_LTZ = " WITH LOCAL TIME ZONE"
_CHAR = "CHAR(3)"


def _times(digits: int, ticks: int) -> dict[str, Sequence[Any]]:
    cells = sorted({nanos // ticks for nanos in _NANOS})
    return {f"TIMESTAMP({digits})": cells, f"TIMESTAMP({digits}){_LTZ}": cells}


CELLS: Mapping[str, Sequence[Any]] = {
    _CHAR: ["a", "ab ", "abc", "", "é"],
    "VARCHAR(4)": ["", "a", "ab", "abcd", "é𝄞", "a "],
    "STRING": ["", "a", "a text that is longer than bounds", "a%", "\uffff", "\U0010ffff" * 20],
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 0, 127],
    "INT": [-(2**31), -1, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**62), -1, 0, 7, 2**63 - 1],
    "FLOAT": [0.10000000149011612, -0.0, 0.0, 1.5, _NAN, -_INF],
    "DOUBLE": [0.1, -0.0, 0.0, 1e300, _NAN, _INF],
    "DECIMAL(5, 2)": [Decimal(text) for text in ("1.05", "-0.05", "999.99", "0.00")],
    "DECIMAL(30, 4)": [Decimal("1.0500"), Decimal("-12345678901234567890123456.7890")],
    "DATE": [-1, 0, 19_000, 2_932_896],
    "TIME(3)": [0, 1, 86_399_999],
    **_times(3, 10**6),
    **_times(6, 1000),
    **_times(9, 1),
    "BINARY(3)": [b"abc", b"\x00\xff\x80"],
    "BYTES": [b"", b"\x00\xff", b"\x80\x01"],
}  # fmt: skip


def _row(*fields: tuple[str, Any]) -> dict[str, Any]:
    named = enumerate(fields, 900)
    return {"type": "ROW", "fields": [{"id": n, "name": f, "type": t} for n, (f, t) in named]}


NESTED: Sequence[tuple[Any, Sequence[Any]]] = [
    ({"type": "ARRAY", "element": "INT"}, [[], [1, None], [3]]),
    (
        _row(("x", "INT"), ("y", "STRING"), ("in", _row(("z", "DECIMAL(6, 2)")))),
        [(1, "a", (Decimal("1.00"),)), (None, None, None), (2, "", (None,))],
    ),
    (
        {"type": "ARRAY", "element": _row(("a", "INT"), ("t", "TIMESTAMP(3)"))},
        [[], [(1, 5)], [None, (None, None)]],
    ),
    (
        {"type": "MAP", "key": "STRING NOT NULL", "value": _row(("v", "INT"))},
        [[], [("k", (1,))], [("a", None), ("b", (None,))]],
    ),
    ({"type": "MULTISET", "element": "STRING NOT NULL"}, [[], [("a", 2), ("b", 1)]]),
]
PARTITIONS: Mapping[str, Sequence[Any]] = {
    "STRING": ["", "a", "a/b=c", "é %25", " ", "__DEFAULT_PARTITION__"],
    "VARCHAR(4)": ["", "a", "%"], "INT": [0, -1, 5], "DATE": [0, 19_000, -141_427],
    "BOOLEAN": [True, False], "DECIMAL(5, 2)": CELLS["DECIMAL(5, 2)"], "DOUBLE": [0.1, 1e300],
    "TIME(3)": [0, 1], "TIMESTAMP(3)": [0, 1_700_000_000_123], f"TIMESTAMP(6){_LTZ}": [0, 10**15],
}  # fmt: skip
_INDEXES: Mapping[str, str] = {
    "bitmap": "BOOLEAN TINYINT INT BIGINT STRING VARCHAR(4) DATE TIMESTAMP(3)",
    "bloom-filter": "INT BIGINT STRING VARCHAR(4) DOUBLE DATE BYTES TIMESTAMP(6) TIME(3)",
    "bsi": "INT BIGINT DATE TIMESTAMP(3) TIMESTAMP(6)",
    "range-bitmap": "INT BIGINT STRING VARCHAR(4) DOUBLE FLOAT DATE BOOLEAN TIMESTAMP(3)",
}
_ENGINES: Sequence[dict[str, str]] = [
    {}, {}, {}, {"merge-engine": "partial-update", "ignore-delete": "true"},
    {"merge-engine": "first-row", "ignore-delete": "true"},
    {"merge-engine": "aggregation", "fields.default-aggregate-function": "last_non_null_value"},
]  # fmt: skip
_FORMATS: Sequence[dict[str, str]] = [
    {"file.format": "parquet"}, {"file.format": "parquet"}, {"file.format": "orc"},
    {"file.format": "avro"}, {"file.format": "avro", "file.format.per.level": "5:orc"},
    {"file.format": "orc", "file.format.per.level": "0:parquet,5:avro"},
]  # fmt: skip
_KEYED_BUCKETS: Sequence[dict[str, str]] = [
    {"bucket": "1"}, {"bucket": "3"}, {"dynamic-bucket.target-row-num": "3"},
    {"bucket": "1", "target-file-size": "1 b"},
]  # fmt: skip
_LIKES = ["a%", "a text%", "%b_", "é", "_%", "", "a\\%"]


class EvolvedLife:
    """One table in `folder`, and what has been done to it."""

    def __init__(self, seed: int, folder: Path, javas: tuple[Oracle, Oracle]) -> None:
        self.random, self.folder, self.javas = Random(seed), folder, javas
        random = self.random
        self.done: list[str] = []
        self.keyed = random.random() < 0.65
        options = dict(random.choice(_FORMATS))
        self.formats = " ".join(options.values())
        self.cells: dict[str, Sequence[Any]] = {}
        types: dict[str, Any] = {}
        self.partitions = [f"p{n}" for n in range(random.choice([0, 1, 1, 2]))]
        for name in self.partitions:
            types[name] = random.choice(list(PARTITIONS))
            null = [] if self.keyed else [None]
            self.cells[name] = [*self._fit(types[name], PARTITIONS[types[name]]), *null]
        self.keys = [f"k{n}" for n in range(random.choice([1, 1, 2]))]
        for name in self.keys:
            types[name] = random.choice([t for t in self.types if t not in ("FLOAT", "DOUBLE")])
            self.cells[name] = self._fit(types[name], CELLS[types[name]])
        for n in range(random.randint(2, 4)):
            types[f"c{n}"], self.cells[f"c{n}"] = self.draw_column()
        options |= self._keyed_options(types) if self.keyed else self._keyless_options()
        options |= self._file_options(types)
        columns = random.sample(list(types.items()), len(types))
        keys = [*self.partitions, *self.keys] if self.keyed else []
        self.table = native_table(
            folder, columns, partitions=self.partitions, keys=keys, options=options
        )
        self.options, self.changes = options, ColumnChanges(self, types)
        self.tagged: list[str] | None = None
        self.write()

    @property
    def types(self) -> list[str]:
        """The types that the table's formats have, of which Java keeps the values."""
        none = {f"TIMESTAMP(9){zone}" for zone in ("", _LTZ)} if "avro" in self.formats else set()
        return [t for t in CELLS if t not in none and not (t == _CHAR and "orc" in self.formats)]

    def draw_column(self) -> tuple[Any, Sequence[Any]]:
        """A type and cells of it."""
        if self.random.random() < 0.3:
            t, cells = self.random.choice(NESTED)
            return json.loads(json.dumps(t)), cells
        t = self.random.choice(self.types)
        return t, self.cells_of(t)

    def cells_of(self, t: str) -> Sequence[Any]:
        """Cells of a type that is not nested."""
        return self._fit(t, CELLS[t])

    def _fit(self, t: str, cells: Sequence[Any]) -> list[Any]:
        """The cells that Java's ORC files keep: docs/compatibility.md."""
        if "orc" not in self.formats:
            return [*cells]
        if t in ("FLOAT", "DOUBLE"):
            return [cell for cell in cells if str(cell) != "-0.0"]
        is_time = t.startswith("TIMESTAMP")
        return [cell for cell in cells if not is_time or cell >= 0 or cell % 1000 == 0]

    # Options.

    def _keyed_options(self, types: Mapping[str, Any]) -> dict[str, str]:
        random = self.random
        # Java 1.4 looks up no bytes in files of an older schema.
        binary = any(types[name] in ("BINARY(3)", "BYTES") for name in self.keys)
        engines = [e for e in _ENGINES if not binary or e.get("merge-engine") != "first-row"]
        options = {**random.choice(_KEYED_BUCKETS), **random.choice(engines)}
        if options.get("merge-engine") == "first-row":
            return options
        producers = ["none", "none", "lookup", "full-compaction", "input"]
        options["changelog-producer"] = random.choice(producers)
        ordered = ("INT", "BIGINT", "DATE", "STRING", "DECIMAL(5, 2)", "TIMESTAMP(6)", "TIME(3)")
        fields = [name for name in types if name[0] == "c" and types[name] in ordered]
        if fields and random.random() < 0.6:
            options["sequence.field"] = ",".join(random.sample(fields, min(2, len(fields))))
            orders = ["ascending", "descending"]
            options["sequence.field.sort-order"] = random.choice(orders)
        looks_up = options["changelog-producer"] in ("none", "lookup") and not binary
        if looks_up and random.random() < 0.35:
            options["deletion-vectors.enabled"] = "true"
            for name in ("bitmap64", "merge-on-read"):
                options[f"deletion-vectors.{name}"] = random.choice(["true", "false"])
        if random.random() < 0.3:
            options |= {"metadata.stats-mode.per.level": "0:none,5:full"}
        return options | {"data-file.thin-mode": random.choice(["true", "false"])}

    def _keyless_options(self) -> dict[str, str]:
        buckets = {"bucket": "2", "bucket-key": self.keys[0]}
        options = self.random.choice([{}, {"row-tracking.enabled": "true"}, buckets])
        return {**options, "compaction.min.file-num": self.random.choice(["2", "5"])}

    def _file_options(self, types: Mapping[str, Any]) -> dict[str, str]:
        random = self.random
        options = {
            "manifest.merge-min-count": "3",
            "metadata.stats-mode": random.choice(["truncate(3)", "none", "full", "counts"]),
            "metadata.stats-dense-store": random.choice(["true", "false"]),
            "partition.legacy-name": random.choice(["true", "false"]),
            "file-index.in-manifest-threshold": random.choice(["1 b", "500 b"]),
            f"fields.{random.choice(self.keys)}.stats-mode": random.choice(["none", "full"]),
        }
        places: list[dict[str, str]] = [
            {}, {"data-file.path-directory": "some/files"}, {"partition.default-name": "none here"},
            {
                "data-file.external-paths": f"file://{self.folder}/a,file://{self.folder}/b",
                "data-file.external-paths.strategy": "round-robin",
            },
        ]  # fmt: skip
        options |= random.choice(places)
        for kind in random.sample(list(_INDEXES), random.choice([0, 0, 1, 2])):
            names = [n for n in types if types[n] in _INDEXES[kind].replace(")", ") ").split()]
            if names:
                options[f"file-index.{kind}.columns"] = ",".join(names)
        return options

    # What may be done to a table.

    def step(self) -> None:
        """Do something, and compare."""
        taken = self.random.choice([
            self.write, self.write, self.java_writes, self.java_writes, self.compact,
            self.java_compacts, self.change_columns, self.change_columns, self.change_columns,
            self.filter, self.filter, self.overwrite, self.java_overwrites, self.drop_partition,
            self.truncate, self.expire, self.look_up,
        ])  # fmt: skip
        taken()
        self.table = open_native(self.folder)
        if taken not in (self.filter, self.look_up):  # which only read
            self.check()

    def rows(self) -> list[dict[str, Any]]:
        """Rows with a key each; some are deletes."""
        random, found = self.random, dict[str, dict[str, Any]]()
        needed = {*self.partitions, *(self.keys if self.keyed else ())}
        for _ in range(random.randint(1, 6)):
            row = {name: random.choice(cells) for name, cells in self.cells.items()}
            row |= {name: None for name in row if name not in needed and random.random() < 0.25}
            key = repr([row[name] for name in (*self.partitions, *self.keys)])
            deletes = self.keyed and "merge-engine" not in self.options and random.random() < 0.2
            found[key] = {**row, "_kind": RowKind.DELETE if deletes and found else RowKind.INSERT}
        return [*found.values()]

    def write(self) -> None:
        """Commit a batch."""
        rows = self.rows()
        self.done.append(f"write {rows}")
        put(self.table, rows)

    def java_writes(self) -> None:
        """Let one of both write a batch."""
        self._append(self.rows(), "--compact", self.random.choice(["none", "auto"]))

    def java_overwrites(self) -> None:
        """Let one of both replace the partitions of a batch."""
        self._append([row for row in self.rows() if not row["_kind"]], "--overwrite", "")

    def _append(self, rows: list[dict[str, Any]], *flags: str) -> None:
        java = self.random.randrange(2)
        self.done.append(f"java {java} appends {rows} {flags}")
        lines = json_lines(rows_table(self.table.schema, rows), self.table.schema.fields)
        given = [
            {**json.loads(line), "_kind": row["_kind"].symbol}
            for line, row in zip(lines, rows, strict=True)
        ]
        named = ("--user", "java", "--identifier", len(self.done), *flags)
        self.javas[java].append(self.folder, "db", "t", given, self.folder, *named)

    def overwrite(self) -> None:
        """Replace the partitions of a batch."""
        rows = [row for row in self.rows() if not row["_kind"]]
        self.done.append(f"overwrite {rows}")
        state = load_state(self.table)
        typed = rows_table(self.table.schema, rows, state.max_sequence_number + 1)
        messages = tuple(write(self.table, replace(state, index_entries=IndexEntries()), typed))
        committable = ManifestCommittable(1000 + len(self.done), messages)
        overwrite(self.table, USER, committable, state=state, now_ms=NOW_MS)

    def compact(self) -> None:
        """Compact; no row changes."""
        before, full = self.lines(), self.random.random() < 0.6
        self.done.append(f"compact, full {full}")
        compact_table(self.table, now_ms=NOW_MS, full=full)
        self._unchanged(before)

    def java_compacts(self) -> None:
        """Let one of both compact everything; no row changes."""
        before, java = self.lines(), self.random.randrange(2)
        self.done.append(f"java {java} compacts")
        self.javas[java].compact(self.folder, "db", "t")
        self._unchanged(before)

    def change_columns(self) -> None:
        """Change the schema, or let one of both Javas change it."""
        changes, theirs = self.changes.draw()
        java = self.random.randrange(4)
        self.done.append(f"java {java} changes {theirs}" if java < 2 else f"change {theirs}")
        if java < 2 and theirs:
            self._java_does({"alter": theirs}, java)
        else:
            self.table = self.changes.apply(self.table, changes)

    def drop_partition(self) -> None:
        """Drop a partition."""
        if self.partitions:
            name = self.partitions[0]
            spec = {name: self.random.choice(self.cells[name])}
            self.done.append(f"drop {spec}")
            drop_partitions(self.table, [spec], now_ms=NOW_MS)

    def truncate(self) -> None:
        """Delete all rows."""
        java = self.random.randrange(4)
        self.done.append(f"truncate, java {java < 2}")
        if java < 2:
            self._java_does({"truncate": True}, java)
        else:
            truncate_table(self.table, now_ms=NOW_MS)

    def expire(self) -> None:
        """Tag the newest snapshot, and leave nothing but it and what tags need."""
        snapshot, java = latest_snapshot(self.table.io, self.table.paths), self.random.randrange(4)
        assert snapshot is not None
        self.done.append(f"expire, java {java < 2}")
        if self.tagged is None:
            create_tag(self.table, "kept", snapshot, now_ms=NOW_MS)
            then = self.table.at_schema(snapshot.schema_id)
            rows = read_table(then, snapshot_id=snapshot.id)
            self.tagged = sorted_json_lines(rows, then.schema.fields)
        if java < 2:
            self._java_does({"expire": 1}, java)
        else:
            kept = {f"snapshot.num-retained.{bound}": "1" for bound in ("min", "max")}
            expire_snapshots(self.table, expire_settings(kept), NOW_MS)
        self._check_tag(self.tagged)

    def _check_tag(self, tagged: list[str]) -> None:
        for java in self._readers:
            self._same(java.read_lines(self.folder, "db", "t", "--tag", "kept"), tagged)

    def _java_does(self, step: Mapping[str, Any], java: int) -> None:
        spec = {"existing": True, "steps": [step]}
        self.javas[java].write_spec(spec, self.folder, self.folder)

    # What only reads.

    def filter(self) -> None:
        """Read with conditions, which files are skipped by."""
        whole, schema = read_table(self.table), self.table.schema
        types = {field.name: field.type for field in schema.fields}
        for _ in range(4):
            leaf, other = self._leaf(), self._leaf()
            for predicate in (leaf, Not(leaf), And((leaf, other)), Or((leaf, other))):
                expected = sorted_json_lines(matching(predicate, whole, types), schema.fields)
                found = read_table(self.table, predicate=predicate)
                self._same(sorted_json_lines(found, schema.fields), expected, predicate)
                text = self._java_condition(predicate) if predicate is leaf else None
                for java in self._readers if text else ():
                    lines = java.read_lines(self.folder, "db", "t", "--filter", text)
                    self._same(lines, expected, text)

    def look_up(self) -> None:
        """Read rows by their keys."""
        names, whole = self.table.schema.primary_keys, read_table(self.table)
        if names and whole.num_rows:
            rows = whole.slice(self.random.randrange(whole.num_rows), 3)
            reader = PointReader.of(self.table, scan_target(self.table), rows.select(names))
            found, fields = pa.concat_tables([*reader.rows()]), self.table.schema.fields
            self._same(sorted_json_lines(found, fields), sorted_json_lines(rows, fields))

    def _leaf(self) -> Leaf:
        random = self.random
        name = random.choice(list(self.cells))
        t = self.changes.types[name]
        if not isinstance(t, str) or random.random() < 0.15:
            return IsNull(name)
        if t in (_CHAR, "VARCHAR(4)", "STRING") and random.random() < 0.3:
            return Like(name, random.choice(_LIKES))
        cells = [cell for cell in self.cells[name] if cell is not None]
        if random.random() < 0.25:
            return IsIn(name, tuple(random.sample(cells, min(2, len(cells)))))
        operator = random.choice(["=", "=", "!=", "<", "<=", ">", ">="])
        return Comparison(name, operator, random.choice(cells))

    def _java_condition(self, leaf: Leaf) -> str | None:
        """The condition for the judge; None if it or Java has no such condition."""
        if isinstance(leaf, IsNull):
            return f"{leaf.column}=null"
        if not isinstance(leaf, Comparison) or str(leaf.value) in ("nan", "inf", "-inf"):
            return None
        field = self.table.schema.field(leaf.column)
        if isinstance(leaf.value, bytes) and leaf.operator not in ("=", "!="):
            return None  # Java compares bytes as -128 to 127
        if self._is_known(field.type.root):
            return None
        row = pa.table({field.name: column_of([leaf.value], field.type)})
        cell = json.loads(json_lines(row, [field])[0])[field.name]
        return f"{leaf.column}{leaf.operator}{cell if isinstance(cell, str) else json.dumps(cell)}"

    def _is_known(self, root: str) -> bool:
        # Filters of Java on ORC files miss NaN, and days before 1582: docs/compatibility.md.
        return "orc" in self.formats and root in ("FLOAT", "DOUBLE", "DATE")

    # What is true at any time.

    def check(self) -> None:
        """Both Javas read the same rows, and nothing is wrong with the files."""
        lines = self.lines()
        for java in self._readers:
            self._same(java.read_lines(self.folder, "db", "t"), lines)
        errors = [one for one in verify(self.table) if one.severity == "error"]
        assert not errors, f"{errors}: {self}"

    def check_files(self) -> None:
        """The tag reads as before, and without it both Javas find nothing wrong."""
        if self.tagged is not None:
            self._check_tag(self.tagged)
            delete_tags(self.table, "kept")
        for java in self.javas:
            found = java.fsck(self.folder, "db", "t")
            # Java's bounds of ORC files leave out NaN.
            kept = [one for one in found if '"NaN"' not in one["message"]]
            errors = [one for one in kept if one["severity"] == "error"]
            assert not errors, f"{errors}: {self}"

    def lines(self) -> list[str]:
        """The rows of the table."""
        return sorted_json_lines(read_table(self.table), self.table.schema.fields)

    def __repr__(self) -> str:
        steps = "\n".join(self.done)
        return f"{self.options}, {self.changes.types}, {self.partitions}, {self.keys}:\n{steps}"

    @property
    def _hides(self) -> bool:
        """Whether readers see compacted rows only."""
        merges = self.options.get("deletion-vectors.merge-on-read") == "true"
        first_row = self.options.get("merge-engine") == "first-row"
        return first_row or ("deletion-vectors.enabled" in self.options and not merges)

    @property
    def _readers(self) -> tuple[Oracle, ...]:
        """The Javas that see the rows that ingestd sees: 1.4 does not merge vectors on read."""
        merges = "deletion-vectors.enabled" in self.options and not self._hides
        return self.javas[1:] if merges else self.javas

    def _unchanged(self, before: list[str]) -> None:
        if not self._hides:
            self._same(self.lines(), before)

    def _same(self, found: list[str], expected: list[str], what: Any = "") -> None:
        more, less = Counter(found) - Counter(expected), Counter(expected) - Counter(found)
        assert not more and not less, f"{what}: more {[*more]}, less {[*less]}: {self}"

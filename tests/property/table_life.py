"""The life of a table against a dictionary: changes, schema changes, overwrites, compactions.

The machine of `tests/property/test_table_life.py`. Options of all kinds meet merge engines, kinds
of buckets and changelog producers; ingestd and both Javas compact. A row of the model holds its
cells by column; what the table holds is compared after every step, older snapshots now and then,
and in the end with what Java reads.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)
from ingestd.paimon.table.commit.overwrite import drop_partitions, truncate_table
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id, read_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, put
from tests.support.oracle import Oracle

Key = tuple[int, str]
Row = dict[str, Any]
Model = dict[Key, Row]
KEYS = st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "ab", "é", "longer than seven", "𝄞"]))
CHANGES = st.tuples(
    KEYS, st.none() | st.integers(-5, 5), st.none() | st.sampled_from(["x", "", "yy"]),
    st.sampled_from([0, 0, 0, 2, 1, 3]),
)  # fmt: skip
BUCKETS = st.sampled_from(
    [{"bucket": "1"}, {"bucket": "3"}, {"dynamic-bucket.target-row-num": "2"},
     {"bucket": "2", "bucket-key": "k"}, {"bucket": "1", "target-file-size": "1 b"}]
)  # fmt: skip
FORMATS = st.sampled_from(["parquet", "parquet", "orc", "avro"])
STATS = st.sampled_from(["truncate(16)", "none", "full"])
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
        "fields.default-aggregate-function": "last_non_null_value",
    },
}  # fmt: skip
PRODUCERS = st.sampled_from(["none", "none", "input", "lookup", "full-compaction"])
VECTORS = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}
OUTSIDE = "data-file.external-paths"
MORE: dict[str, dict[str, str]] = {
    "nothing": {},
    "vectors": VECTORS,
    "vectors of 64 bits": {**VECTORS, "deletion-vectors.bitmap64": "true"},
    "vectors beside the files": {**VECTORS, "index-file-in-data-file-dir": "true"},
    "thin files": {"data-file.thin-mode": "true"},
    "a directory": {"data-file.path-directory": "some/files"},
    "paths outside": {f"{OUTSIDE}.strategy": "round-robin"},
    "indexes": {
        "file-index.bitmap.columns": "k", "file-index.bloom-filter.columns": "p",
        "file-index.bsi.columns": "n", "file-index.in-manifest-threshold": "100 b",
    },
    "ranges": {"file-index.range-bitmap.columns": "n,k"},
    "ages": {"record-level.expire-time": "36500 d", "record-level.time-field": "n"},
}  # fmt: skip
EXTRA = ("e0", "e1", "e2")


def _deduplicate(now: Row | None, row: Row, kind: int) -> Row | None:
    return None if kind in (1, 3) else row


def _partial_update(now: Row | None, row: Row, kind: int) -> Row | None:
    if kind in (1, 3):
        return now
    return {**(now or row), **{name: cell for name, cell in row.items() if cell is not None}}


def _aggregation(now: Row | None, row: Row, kind: int) -> Row | None:
    merged = _partial_update(now, row, 0)
    if now is not None and merged is not None and None not in (now["n"], row["n"]):
        merged["n"] = now["n"] + row["n"]
    return merged


MERGES: dict[str, Callable[[Row | None, Row, int], Row | None]] = {
    "deduplicate": _deduplicate,
    "partial-update": _partial_update,
    "aggregation": _aggregation,
}


class TableLife(RuleBasedStateMachine):
    """A table that ingestd writes; the test sets `folder` and the Javas of both releases."""

    oracle: ClassVar[Oracle]
    oracle_2: ClassVar[Oracle]
    folder: ClassVar[Path]

    @initialize(
        engine=st.sampled_from(sorted(ENGINES)), buckets=BUCKETS, partitioned=st.booleans(),
        file_format=FORMATS, stats=STATS, producer=PRODUCERS, more=st.sampled_from(sorted(MORE)),
    )  # fmt: skip
    def create(
        self, engine: str, buckets: dict[str, str], partitioned: bool, file_format: str, stats: str,
        producer: str, more: str,
    ) -> None:  # fmt: skip
        shutil.rmtree(self.folder, ignore_errors=True)
        if producer == "full-compaction" and "vectors" in more:
            producer = "lookup"  # such a table cannot be created
        options = {
            **buckets, **ENGINES[engine], "file.format": file_format, "metadata.stats-mode": stats,
            "manifest.merge-min-count": "3", "changelog-producer": producer, **MORE[more],
        }  # fmt: skip
        if more == "paths outside":
            options[OUTSIDE] = f"file://{self.folder}/a,file://{self.folder}/b"
        columns = [("p", "INT"), ("k", "STRING"), ("n", "INT"), ("v", "STRING")]
        self.table = native_table(
            self.folder, columns, keys=["p", "k"], partitions=["p"] if partitioned else [],
            options=options,
        )  # fmt: skip
        self.engine, self.partitioned = engine, partitioned
        self.model: Model = {}
        self.past: dict[int, tuple[Model, list[str]]] = {}
        self.text = "v"
        self.extra: dict[str, str] = {}

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=10), more=st.none() | st.integers(-9, 9))
    def write(self, changes: list[Any], more: int | None) -> None:
        rows = []
        for (p, k), n, v, kind in changes:
            cells = {"p": p, "k": k, "n": n, self.text: v, **dict.fromkeys(self.extra, more)}
            used = 0 if self.engine == "aggregation" else kind
            rows.append({**cells, "_kind": used})
            merged = MERGES[self.engine](self.model.get((p, k)), cells, used)
            if merged is None:
                self.model.pop((p, k), None)
            else:
                self.model[p, k] = merged
        put(self.table, rows)
        self._remember()

    @precondition(lambda self: len(self.extra) < len(EXTRA))
    @rule()
    def add_column(self) -> None:
        name = next(name for name in EXTRA if name not in self.extra)
        self._alter(AddColumn(name, parse_type("INT")))
        self.extra[name] = "INT"
        self.model = {key: {**row, name: None} for key, row in self.model.items()}

    @precondition(lambda self: self.extra)
    @rule()
    def drop_column(self) -> None:
        name = next(iter(self.extra))
        self._alter(DropColumn(name))
        del self.extra[name]
        self.model = {
            key: {n: cell for n, cell in row.items() if n != name}
            for key, row in self.model.items()
        }

    @precondition(lambda self: "INT" in self.extra.values())
    @rule()
    def widen_column(self) -> None:
        name = next(name for name, t in self.extra.items() if t == "INT")
        self._alter(UpdateColumnType(name, parse_type("BIGINT")))
        self.extra[name] = "BIGINT"

    @rule()
    def rename_column(self) -> None:
        new = "w" if self.text == "v" else "v"
        self._alter(RenameColumn(self.text, new))
        self.model = {
            key: {new if n == self.text else n: cell for n, cell in row.items()}
            for key, row in self.model.items()
        }
        self.text = new

    @precondition(lambda self: self.past)
    @rule(newer=st.booleans())
    def java_compacts(self, newer: bool) -> None:
        (self.oracle_2 if newer else self.oracle).compact(self.folder, "db", "t")
        self._remember()

    @precondition(lambda self: self.past)
    @rule(full=st.booleans())
    def we_compact(self, full: bool) -> None:
        compact_table(self.table, now_ms=NOW_MS, full=full)
        self._remember()

    @precondition(lambda self: self.partitioned and self.model)
    @rule(p=st.integers(0, 2))
    def drop_partition(self, p: int) -> None:
        specs = [parse_partition_spec(self.table, f"p={p}")]
        drop_partitions(self.table, specs, now_ms=NOW_MS)
        self.model = {key: row for key, row in self.model.items() if key[0] != p}
        self._remember()

    @precondition(lambda self: self.model)
    @rule()
    def truncate(self) -> None:
        truncate_table(self.table, now_ms=NOW_MS)
        self.model = {}
        self._remember()

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.past)))
        model, names = self.past[number]
        then = self.table.at_schema(
            read_snapshot(self.table.io, self.table.paths, number).schema_id
        )
        self._compare(read_table(then, snapshot_id=number).to_pylist(), model, names)

    @invariant()
    def reads_what_the_model_holds(self) -> None:
        self._compare(read_table(self.table).to_pylist(), self.model, self._names())

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        assert [one for one in verify(self.table) if one.severity == "error"] == []
        lines = sorted_json_lines(read_table(self.table), self.table.schema.fields)
        assert self.oracle_2.read_lines(self.folder, "db", "t") == lines
        if "deletion-vectors.enabled" not in self.table.schema.options:
            # Java 1.4 shows only compacted rows of the others.
            assert self.oracle.read_lines(self.folder, "db", "t") == lines

    def _alter(self, change: SchemaChange) -> None:
        self.table = alter(self.table, change)

    def _names(self) -> list[str]:
        return list(self.table.schema.field_names)

    def _remember(self) -> None:
        newest = latest_snapshot_id(self.table.io, self.table.paths)
        # A snapshot keeps the schema that the table has when it is made.
        if newest is not None and newest not in self.past:
            self.past[newest] = (dict(self.model), self._names())

    def _compare(self, rows: list[Row], model: Model, names: list[str]) -> None:
        found = {(row["p"], row["k"]): row for row in rows}
        assert len(found) == len(rows)
        assert found == {key: {name: row[name] for name in names} for key, row in model.items()}

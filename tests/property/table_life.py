"""The life of a table against a dictionary: changes, schema changes, overwrites, Java compacting.

The machine of `tests/property/test_table_life.py`. A row of the model holds its cells by column;
what the table holds is compared after every step, older snapshots now and then.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)
from ingestd.paimon.table.commit.overwrite import drop_partitions, truncate_table
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id
from ingestd.paimon.table.read.table_read import at_snapshot, read_table
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
    """A table that ingestd writes and Java compacts; `oracle` and `folder` are set by the test."""

    oracle: ClassVar[Oracle]
    folder: ClassVar[Path]

    @initialize(
        engine=st.sampled_from(sorted(ENGINES)), buckets=BUCKETS, partitioned=st.booleans(),
        file_format=FORMATS, stats=STATS,
    )  # fmt: skip
    def create(
        self, engine: str, buckets: dict[str, str], partitioned: bool, file_format: str, stats: str
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        options = {
            **buckets, **ENGINES[engine], "file.format": file_format,
            "metadata.stats-mode": stats, "manifest.merge-min-count": "3",
        }  # fmt: skip
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
    @rule()
    def java_compacts(self) -> None:
        self.oracle.compact(self.folder, "db", "t")
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
        then = at_snapshot(self.table, number)
        self._compare(read_table(then, snapshot_id=number).to_pylist(), model, names)

    @invariant()
    def reads_what_the_model_holds(self) -> None:
        self._compare(read_table(self.table).to_pylist(), self.model, self._names())

    def teardown(self) -> None:
        if hasattr(self, "table"):
            assert [one for one in verify(self.table) if one.severity == "error"] == []

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

"""Compaction as Java does it: after the same steps both tables hold and tell the same."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.table.compact.compact_bucket import TreePlan
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.compact_twins import CompactTwins, How
from tests.support.merge_cases import random_case, with_ages
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

COLUMNS = [("k", "INT"), ("v", "STRING"), ("s", "INT")]
SUM = {"merge-engine": "aggregation", "fields.s.aggregate-function": "sum"}
LOOKUP = {"changelog-producer": "lookup"}
FULL = {"changelog-producer": "full-compaction"}
VECTORS = {"deletion-vectors.enabled": "true"}
FIRST = {"merge-engine": "first-row"}
DEDUPLICATED = {"changelog-producer.row-deduplicate": "true"}
LEVELS = {
    "num-sorted-run.compaction-trigger": "3",
    "compaction.max-size-amplification-percent": "5000",
}
EXPIRY = {"record-level.expire-time": "1 d", "record-level.time-field": "s"}
EXPIRING: dict[str, dict[str, str]] = {
    "plain": LEVELS,
    "small files": {"target-file-size": "1 kb"},
    "lookup": {**LOOKUP, **LEVELS},
    "full of texts": {
        **FULL,
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "max",
        "ignore-delete": "true",
    },
    "vectors and lookup": {**VECTORS, **LOOKUP},
    "first row": FIRST,
    "partial update": {"merge-engine": "partial-update", "ignore-delete": "true", **LEVELS},
}
"""Options of tables with `EXPIRY`."""
OLD, NEW = 1_000_000, 2_000_000_000
"""Seconds before and after the clocks of both."""
UNTIMED, TIMED = (6, 6) if "INGESTD_LONG" in os.environ else (3, 3)
"""Random tables whose rows do not expire, and those whose rows do."""
TABLES: dict[str, dict[str, str]] = {
    "plain": {},
    "plain with levels": LEVELS,
    "small files": {"target-file-size": "1 kb"},
    "formats by level": {"file.format.per.level": "0:avro,5:orc", **LOOKUP},
    "vectors": {**VECTORS, **LEVELS},
    "vectors and sequence": {**VECTORS, "sequence.field": "s", **LEVELS},
    "vectors and lookup": {**VECTORS, **LOOKUP},
    "vectors and sums": {**VECTORS, **SUM, **LEVELS},
    "lookup": {**LOOKUP, **LEVELS},
    "lookup, deduplicated": {**LOOKUP, **DEDUPLICATED},
    "lookup of sums": {**LOOKUP, **SUM},
    "full": {**FULL, **LEVELS},
    "full, deduplicated": {**FULL, **DEDUPLICATED},
    "full of sums": {**FULL, **SUM},
    "first row": FIRST,
    **{f"expiry, {name}": {**EXPIRY, **options} for name, options in EXPIRING.items()},
    "first row and lookup": {**FIRST, **LOOKUP},
}


@pytest.mark.parametrize("name", TABLES)
def test_both_hold_and_show_the_same(name: str, tmp_path: Path, oracle: Oracle) -> None:
    random, options = Random(name), {"bucket": "1", **TABLES[name]}
    twins = CompactTwins(oracle, tmp_path, COLUMNS, options)
    expires = EXPIRY.items() <= options.items()
    kinds = [0] if "merge-engine" in options and "first" in name else [0, 0, 0, 2, 3]
    steps: list[How] = ["auto", "auto", "none", "auto", "full", "auto", "auto", "auto", "full"]
    for n, how in enumerate(steps):
        keys = [random.randrange(random.choice([20, 90])) for _ in range(random.choice([5, 30]))]
        rows = [
            {
                "k": k,
                "v": f"v{n % 3}",
                "_kind": random.choice(kinds),
                "s": random.choice([OLD, NEW, None]) if expires else random.randrange(5),
            }
            for k in keys
        ]
        twins.step(rows, how)
        if n in (3, 6, 8):
            assert twins.own_rows() == twins.java_rows(), how
    assert twins.problems() == []
    own, java = twins.changes()
    assert own == java
    # Java goes on where we stopped.
    oracle.append(twins.own, "db", "t", [{"k": 1, "v": "J", "s": 9}], tmp_path, "--compact", "full")
    twins.own_rows()
    assert [p for p in oracle.fsck(twins.own, "db", "t", "--all") if p["code"] != "sequence"] == []


@pytest.mark.parametrize("seed", range(UNTIMED + TIMED))
def test_random_tables_are_compacted_alike(seed: int, tmp_path: Path, oracle: Oracle) -> None:
    # Other seeds may show other changes: which runs an automatic compaction takes depends on the
    # sizes of the files, and Java's Parquet files are larger (294, 384); 289 writes no snapshot.
    random = Random(seed)
    case = random_case(random)
    if seed >= UNTIMED:
        case = with_ages(random, case, [OLD, NEW, NEW, None])
    first = case.options.get("merge-engine") == "first-row"
    producers = ["none", "lookup"] if first else ["none", "lookup", "full-compaction"]
    options = {
        **case.options,
        "num-sorted-run.compaction-trigger": random.choice(["2", "3"]),
        "compaction.max-size-amplification-percent": random.choice(["200", "5000"]),
        "changelog-producer": random.choice(producers),
        "changelog-producer.row-deduplicate": random.choice(["true", "false"]),
    }
    if not first and options["changelog-producer"] != "full-compaction" and random.random() < 0.4:
        options |= VECTORS
    twins = CompactTwins(oracle, tmp_path, case.columns, options)
    for n, batch in enumerate(case.batches, 1):
        last = n == len(case.batches)
        how: How = "full" if last else random.choice(["none", "auto", "auto", "full"])
        twins.step(batch, how)
    assert case.settled(twins.own_rows()) == case.settled(twins.java_rows())
    own, java = twins.changes()
    assert case.settled(own) == case.settled(java)
    assert twins.problems() == []


def _spec(options: dict[str, str]) -> dict[str, Any]:
    commits = [
        {"commit": {"rows": [{"k": 20 * n + i, "v": f"v{i % 4}"} for i in range(20)]}}
        for n in range(6)
    ]
    return {
        "database": "db",
        "table": "t",
        "fields": [{"name": "k", "type": "INT"}, {"name": "v", "type": "STRING"}],
        "primaryKey": [],
        "partitionKeys": [],
        "options": options,
        "steps": [
            *commits,
            *([{"delete": {"where": "v=v1"}}] if VECTORS.items() <= options.items() else []),
        ],
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        VECTORS,
        {"bucket": "2", "bucket-key": "k"},
        {"bucket": "2", "bucket-key": "k", **VECTORS},
    ],
    ids=["plain", "vectors", "buckets", "buckets and vectors"],
)
def test_append_tables_keep_their_rows(
    options: dict[str, str], tmp_path: Path, oracle: Oracle
) -> None:
    spec = _spec(options)
    if "bucket" in options:
        # Java deletes in tables without buckets only.
        spec["steps"] = spec["steps"][:6]
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    for full in (False, True):
        before = oracle.read_lines(tmp_path, "db", "t")
        result = compact_table(table, now_ms=NOW_MS, full=full)
        assert result.status == "compacted"
        assert oracle.read_lines(tmp_path, "db", "t") == before
        assert sorted_json_lines(read_table(table), table.schema.fields) == before
        assert [p for p in oracle.fsck(tmp_path, "db", "t") if p["severity"] == "error"] == []
        assert verify(table) == []
        oracle.append(tmp_path, "db", "t", [{"k": n, "v": "J"} for n in range(9)], tmp_path)
    oracle.compact(tmp_path, "db", "t")
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []


def test_a_bucket_that_java_compacts_meanwhile_is_given_up(
    tmp_path: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"bucket": "1", **VECTORS}
    table = native_table(tmp_path, COLUMNS, keys=["k"], options=options)
    for n in range(3):
        put(table, [{"k": k, "v": f"v{n}", "s": n} for k in range(n, n + 5)])
    run = TreePlan.run

    def java_first(self: TreePlan) -> Any:
        made = run(self)
        oracle.compact(tmp_path, "db", "t")
        oracle.append(tmp_path, "db", "t", [{"k": 50, "v": "J", "s": 1}], tmp_path)
        return made

    monkeypatch.setattr(TreePlan, "run", java_first)
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "lost"
    monkeypatch.undo()
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []
    assert compact_table(table, now_ms=NOW_MS).status == "compacted"
    rows = oracle.read(tmp_path, "db", "t")
    assert sorted(row["k"] for row in rows) == [*range(7), 50]
    assert [p for p in oracle.fsck(tmp_path, "db", "t", "--all") if p["severity"] == "error"] == []
    assert verify(table) == []


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_files_that_java_clusters_step_by_step_are_written_and_left_to_it(
    bucket: str, tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    options = {"bucket": bucket, "clustering.incremental": "true", "clustering.columns": "c"}
    if bucket == "1":
        options |= {"bucket-key": "k", "bucket-append-ordered": "false"}
    fields = [{"name": name, "type": "INT"} for name in ("k", "c")]
    oracle_2.write_spec({"fields": fields, "options": options, "steps": []}, tmp_path, tmp_path)
    table = open_native(tmp_path)
    for _ in range(4):
        put(table, [{"k": k, "c": k * 7 % 5} for k in range(5)])
    oracle_2.compact(tmp_path, "db", "t")
    levels = {file["level"] for file in oracle_2.inspect(tmp_path, "db", "t")["files"]}
    # Only a job of Flink or Spark clusters a table without buckets.
    assert (max(levels) > 0) is (bucket == "1")
    put(table, [{"k": 9, "c": 0}])
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "nothing"
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert len(lines) == 21
    for java in (oracle, oracle_2):
        assert java.read_lines(tmp_path, "db", "t") == lines
        assert java.fsck(tmp_path, "db", "t", "--all") == []
    assert verify(table) == []

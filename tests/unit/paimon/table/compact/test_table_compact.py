import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import CommitUnknownError, FormatError, UnsupportedError
from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact import table_compact as compact
from ingestd.paimon.table.compact.compact_bucket import TreePlan
from ingestd.paimon.table.compact.table_compact import compact_table, plan_compaction
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put

COLUMNS = [("p", "INT"), ("k", "INT"), ("v", "STRING")]


def new(folder: Path, **options: str) -> FileStoreTable:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return native_table(folder, COLUMNS, keys=["p", "k"], partitions=["p"], options=given)


def rows(table: FileStoreTable) -> list[dict[str, Any]]:
    return [
        json.loads(sorted_json_line)
        for sorted_json_line in sorted_json_lines(read_table(table), table.schema.fields)
    ]


def row(k: int, v: str | None, p: int = 0, kind: int = 0) -> dict[str, Any]:
    return {"p": p, "k": k, "v": v, "_kind": kind}


def fill(table: FileStoreTable, commits: int, first: int = 0) -> None:
    for n in range(first, first + commits):
        put(table, [row(1, f"v{n}"), row(100 + n, "own"), row(1, f"w{n}", p=1)])


def shape(table: FileStoreTable) -> dict[tuple[int, int], int]:
    """Rows by bucket and level."""
    found: dict[tuple[int, int], int] = {}
    for entry in live_files(table, latest_snapshot(table.io, table.paths)):
        key = (entry.bucket, entry.file.level)
        found[key] = found.get(key, 0) + entry.file.row_count
    return found


def files_on_disk(folder: Path) -> set[str]:
    return {
        path.name for path in folder.rglob("*") if path.is_file() and "snapshot" not in path.parts
    }


def test_below_the_triggers_nothing_is_done(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    assert compact_table(table, now_ms=NOW_MS).status == "nothing"
    fill(table, 4)
    before = latest_snapshot(table.io, table.paths)
    result = compact_table(table, now_ms=NOW_MS)
    assert (result.status, result.buckets) == ("nothing", ())
    assert latest_snapshot(table.io, table.paths) == before


def test_a_compaction_is_one_snapshot_that_changes_no_row(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    fill(table, 6)
    before, last = rows(table), latest_snapshot(table.io, table.paths)
    result = compact_table(table, now_ms=NOW_MS)
    assert result.status == "compacted"
    made = result.snapshot
    assert made is not None
    assert last is not None
    assert (made.id, made.commit_kind) == (last.id + 1, CommitKind.COMPACT)
    assert (made.total_record_count, made.delta_record_count) == (8, 8 - 18)
    assert rows(table) == before
    assert shape(table) == {(0, 5): 8}
    report = {
        (bucket.files_before, bucket.files_after, bucket.rows_after) for bucket in result.buckets
    }
    assert report == {(6, 1, 7), (6, 1, 1)}
    assert verify(table) == []
    # Older snapshots have their files still.
    old = read_table(table, snapshot_id=last.id)
    assert len(old) == len(before)


def test_deletions_stay_as_long_as_something_older_may_lie_below(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1", num_levels="4", **{"num-sorted-run.compaction-trigger": "3"})
    put(table, [row(k, "x" * 400 + str(k)) for k in range(300)])
    compact_table(table, now_ms=NOW_MS, full=True)
    assert shape(table) == {(0, 3): 300}
    for k in (1, 2):
        put(table, [row(k, None, kind=3)])
    compact_table(table, now_ms=NOW_MS)
    assert shape(table) == {(0, 2): 2, (0, 3): 300}
    assert len(rows(table)) == 298
    compact_table(table, now_ms=NOW_MS, full=True)
    assert shape(table) == {(0, 3): 298}
    assert len(rows(table)) == 298


def test_a_bucket_of_which_nothing_is_left_has_no_file(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    put(table, [row(1, "a")])
    put(table, [row(1, None, kind=3)])
    result = compact_table(table, now_ms=NOW_MS, full=True)
    assert [(bucket.files_before, bucket.files_after) for bucket in result.buckets] == [(2, 0)]
    assert (rows(table), shape(table)) == ([], {})


def test_large_files_without_neighbours_only_change_their_level(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1", target_file_size="1 kb")
    put(table, [row(k, f"{k * 7919:x}" * 9) for k in range(100)])
    put(table, [row(k, f"{k * 7919:x}" * 9) for k in range(100, 200)])
    before = {
        e.file.file_name: e.file for e in live_files(table, latest_snapshot(table.io, table.paths))
    }
    result = compact_table(table, now_ms=NOW_MS, full=True)
    after = [e.file for e in live_files(table, result.snapshot)]
    moved = [file for file in after if file.file_name in before]
    assert moved
    assert len(moved) == sum(bucket.upgraded for bucket in result.buckets)
    for file in moved:
        assert file == dataclasses.replace(before[file.file_name], level=5)
    assert len(rows(table)) == 200
    assert verify(table) == []


def test_only_wanted_partitions_are_compacted(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    fill(table, 3)
    result = compact_table(
        table, now_ms=NOW_MS, full=True, partition_filter=lambda values: values == (1,)
    )
    assert [bucket.rows_before for bucket in result.buckets] == [3]
    assert shape(table) == {(0, 0): 6, (0, 5): 1}


def test_rows_of_older_schemas_come_along(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    put(table, [row(1, "a"), row(2, "b")])
    table = alter(table, RenameColumn(("v",), "w"), AddColumn(("n",), parse_type("INT")))
    put(table, [{"p": 0, "k": 2, "w": "c", "n": 9}])
    before = rows(table)
    compact_table(table, now_ms=NOW_MS, full=True)
    assert rows(table) == before
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    assert entry.file.schema_id == table.schema.id


def test_the_hash_index_of_dynamic_buckets_stays(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="-1", **{"dynamic-bucket.target-row-num": "2"})
    fill(table, 6)
    before = latest_snapshot(table.io, table.paths)
    compact_table(table, now_ms=NOW_MS, full=True)
    after = latest_snapshot(table.io, table.paths)
    assert before is not None
    assert after is not None
    assert after.index_manifest == before.index_manifest
    put(table, [row(1, "again"), row(77, "new")])
    assert {row["k"]: row["v"] for row in rows(table) if row["p"] == 0}[1] == "again"
    assert verify(table) == []


def interrupted(monkeypatch: pytest.MonkeyPatch, between: Callable[[], Any]) -> None:
    """Something that happens when the first bucket has been compacted, before the commit."""
    run, done = TreePlan.run, list[int]()

    def and_then(self: TreePlan) -> Any:
        made = run(self)
        if not done:
            done.append(1)
            between()
        return made

    monkeypatch.setattr(TreePlan, "run", and_then)


def test_appends_of_others_do_not_disturb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new(tmp_path, bucket="-1")
    fill(table, 5)
    interrupted(monkeypatch, lambda: put(table, [row(1, "newer"), row(500, "new")]))
    result = compact_table(table, now_ms=NOW_MS)
    assert result.status == "compacted"
    assert {row["k"]: row["v"] for row in rows(table) if row["p"] == 0}[1] == "newer"
    assert verify(table) == []


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_a_bucket_that_was_compacted_meanwhile_is_given_up(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new(tmp_path, bucket=bucket)
    fill(table, 6)

    def meanwhile() -> None:
        compact_table(table, now_ms=NOW_MS, partition_filter=lambda values: values == (0,))
        put(table, [row(900, "x", p=1)])

    interrupted(monkeypatch, meanwhile)
    result = compact_table(table, now_ms=NOW_MS)
    assert result.status == "compacted"
    assert [bucket.lost for bucket in result.buckets] == [True, False]
    assert verify(table) == []
    assert shape(table) == {(0, 5): 8, (0, 0): 1}


def test_a_compaction_that_lost_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new(tmp_path, bucket="1")
    fill(table, 6)
    found: list[set[str]] = []

    def faster() -> None:
        compact_table(table, now_ms=NOW_MS)
        names = files_on_disk(tmp_path)
        found.append(names)

    interrupted(monkeypatch, faster)
    only = {"partition_filter": lambda values: values == (0,)}
    result = compact_table(table, now_ms=NOW_MS, **only)
    assert (result.status, result.snapshot) == ("lost", None)
    assert files_on_disk(tmp_path) < found[0]
    assert len(rows(table)) == 8
    assert verify(table) == []


def test_whoever_compacts_other_files_of_a_bucket_wins_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"num-sorted-run.compaction-trigger": "3"}
    table = new(tmp_path, bucket="1", **options)
    put(table, [row(k, "x" * 99) for k in range(300)])
    compact_table(table, now_ms=NOW_MS, full=True)
    fill(table, 2)

    def deletes_in_the_top_level() -> None:
        other = dataclasses.replace(table)
        put(other, [row(7, None, kind=3)])
        compact_table(other, now_ms=NOW_MS, full=True)

    interrupted(monkeypatch, deletes_in_the_top_level)
    assert compact_table(table, now_ms=NOW_MS).status in ("lost", "compacted")
    assert verify(table) == []
    assert 7 not in {row["k"] for row in rows(table) if row["p"] == 0}


def test_files_of_a_commit_of_unknown_outcome_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new(tmp_path, bucket="1")
    fill(table, 6)
    before = files_on_disk(tmp_path)

    def unclear(*_: Any, **__: Any) -> Any:
        raise CommitUnknownError("who knows")

    monkeypatch.setattr(compact, "commit", unclear)
    with pytest.raises(CommitUnknownError):
        compact_table(table, now_ms=NOW_MS)
    assert len(files_on_disk(tmp_path) - before) == 2


def test_a_damaged_file_ends_it_without_a_trace(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    fill(table, 6)
    victim = max(tmp_path.rglob("p=1/*/data-*"))
    victim.write_bytes(victim.read_bytes()[:-20])
    before = files_on_disk(tmp_path)
    with pytest.raises(FormatError, match=victim.name):
        compact_table(table, now_ms=NOW_MS)
    assert files_on_disk(tmp_path) == before


def test_a_plan_says_what_would_be_done(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1")
    fill(table, 6)
    plans = plan_compaction(table, now_ms=NOW_MS)
    assert [(plan.reason, len(plan.inputs)) for plan in plans] == [("amplification", 6)] * 2
    assert read_snapshot(table.io, table.paths, 6) == latest_snapshot(table.io, table.paths)


def test_tables_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    table = new(tmp_path, bucket="1", **{"data-evolution.enabled": "true"})
    with pytest.raises(UnsupportedError, match="data-evolution"):
        compact_table(table, now_ms=NOW_MS)
    assert open_native(tmp_path).schema == table.schema


def test_expired_rows_go_when_their_file_is_rewritten(tmp_path: Path) -> None:
    expiry = {"record-level.expire-time": "1 d", "record-level.time-field": "at"}
    table = native_table(
        tmp_path, [("k", "INT"), ("at", "BIGINT")], keys=["k"],
        options={"bucket": "1", "target-file-size": "1 kb", **expiry},
    )  # fmt: skip
    day = 86_400_000
    put(table, [{"k": 1, "at": NOW_MS}, {"k": 2, "at": NOW_MS + day}, {"k": 3}])
    # Readers return what no compaction has dropped. The file is large, but has expired rows.
    compact_table(table, now_ms=NOW_MS + day, full=True)
    assert [row["k"] for row in rows(table)] == [1, 2, 3]
    later = NOW_MS + day + 1000
    result = compact_table(table, now_ms=later, full=True)
    assert result.status == "compacted"
    assert [row["k"] for row in rows(table)] == [2, 3]
    assert compact_table(table, now_ms=later, full=True).status == "nothing"
    renamed = alter(table, RenameColumn("at", "seen"))
    assert compact_table(renamed, now_ms=later + day, full=True).status == "compacted"
    assert [row["k"] for row in rows(renamed)] == [3]


def test_expired_rows_of_a_large_new_file_are_dropped_with_its_first_compaction(
    tmp_path: Path,
) -> None:
    expiry = {"record-level.expire-time": "1 d", "record-level.time-field": "at"}
    table = native_table(
        tmp_path, [("k", "INT"), ("at", "INT")], keys=["k"],
        options={"bucket": "1", "target-file-size": "1 kb", **expiry},
    )  # fmt: skip
    put(table, [{"k": 1, "at": 1}, {"k": 2, "at": 2_000_000_000}])
    put(table, [{"k": 3, "at": 2_000_000_000}])
    result = compact_table(table, now_ms=NOW_MS, full=True)
    assert [row["k"] for row in rows(table)] == [2, 3]
    assert result.buckets[0].upgraded == 1


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_a_bucket_with_nan_keys_in_several_files_is_compacted(vectors: str, tmp_path: Path) -> None:
    options = {"bucket": "1", "target-file-size": "1 b", "deletion-vectors.enabled": vectors}
    table = native_table(tmp_path, [("k", "DOUBLE"), ("v", "INT")], keys=["k"], options=options)
    for n in range(3):
        put(table, [{"k": k, "v": n} for k in (math.nan, -1.5, math.inf, 2.0 + n)])
        assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    kept = {one["k"]: one["v"] for one in rows(table)}
    assert kept == {"NaN": 2, -1.5: 2, "Infinity": 2, 2.0: 0, 3.0: 1, 4.0: 2}
    assert verify(table) == []

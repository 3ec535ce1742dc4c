"""Changelog producer `input`: the changes that Java streams of our tables are those of its own."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.table.metadata.file_store_scan import changelog_entries
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.retention.expire_changelogs import expire_changelogs
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from tests.support.compact_twins import CompactTwins
from tests.support.merge_cases import random_case
from tests.support.moving_keys import Batch
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle, OracleError

pytestmark = pytest.mark.compat

INPUT = {"changelog-producer": "input"}
COLUMNS = [("k", "INT"), ("v", "STRING"), ("n", "INT")]


def _changes(random: Random, keys: int, count: int) -> list[dict[str, Any]]:
    rows = []
    for _ in range(count):
        kind = random.choice([0, 0, 1, 2, 2, 3])
        cell = {"v": random.choice([None, "a", "ü" * 20]), "n": random.randrange(100)}
        rows.append({"k": random.randrange(keys), **cell, "_kind": kind})
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_every_merge_engine_shows_what_came_as_java_does(
    seed: int, tmp_path: Path, oracle: Oracle
) -> None:
    random = Random(seed)
    case = random_case(random)
    while case.options.get("merge-engine") == "first-row":
        case = random_case(random)
    options = {**case.options, **INPUT, "bucket": "1"}
    twins = CompactTwins(oracle, tmp_path, case.columns, options)
    for batch in case.batches:
        twins.step(batch, "none")
    own, java = twins.changes()
    assert own == java
    assert len(own) > 0
    assert twins.problems() == []


@pytest.mark.parametrize(
    ("keys", "partitions", "options"),
    [
        (("k", "p"), ("p",), {"bucket": "2"}),
        (("k", "p"), ("p",), {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}),
        (("k",), (), {"bucket": "3", "changelog-file.format": "orc", "file.format": "avro"}),
        (("k",), (), {"bucket": "1", "changelog-file.prefix": "told-", "target-file-size": "1 b"}),
        (("k",), (), {"bucket": "1", "changelog-producer.row-deduplicate": "true"}),
        (("k",), (), {"bucket": "1", "deletion-vectors.enabled": "true"}),
        (("k",), (), {"bucket": "1", "file-index.bloom-filter.columns": "v"}),
        (("k",), (), {"bucket": "1", "changelog-file.stats-mode": "none"}),
        (("k",), (), {"bucket": "1", "ignore-update-before": "true"}),
        (("k",), (), {"bucket": "1", "ignore-delete": "true"}),
        (("k",), (), {"bucket": "1", "sequence.field": "n"}),
        (("k",), (), {"bucket": "1", "rowkind.field": "v"}),
    ],
    ids=str,
)
def test_tables_of_every_kind_show_what_came_as_java_does(
    keys: Any, partitions: Any, options: Any, tmp_path: Path, oracle: Oracle
) -> None:
    random = Random(7)
    columns = [*COLUMNS, ("p", "INT")]
    twins = CompactTwins(
        oracle, tmp_path, columns, {**INPUT, **options}, keys=keys, partitions=partitions
    )
    for _ in range(3):
        rows = [{**row, "p": random.randrange(2)} for row in _changes(random, 9, 12)]
        if "rowkind.field" in options:
            rows = [{**row, "v": random.choice(["+I", "-U", "+U", "-D"])} for row in rows]
        twins.step(rows, "none")
    own, java = twins.changes()
    assert own == java
    assert len(own) > 5
    assert twins.problems() == []


def _entries(warehouse: Path) -> list[Any]:
    """What the manifests say of the changelog files, but names, sizes and times."""
    table = open_native(warehouse)
    found: list[Any] = []
    for number in snapshot_ids(table.io, table.paths):
        snapshot = read_snapshot(table.io, table.paths, number)
        found.append((snapshot.changelog_record_count, snapshot.commit_kind))
        for entry in changelog_entries(table, snapshot):
            meta = replace(entry.file, file_name="", file_size=0, creation_time_ms=0)
            found.append(replace(entry, file=meta))
    return found


def test_manifests_say_of_changelog_files_what_java_s_say(tmp_path: Path, oracle: Oracle) -> None:
    random = Random(11)
    twins = CompactTwins(oracle, tmp_path, COLUMNS, {**INPUT, "bucket": "1"})
    for _ in range(3):
        twins.step(_changes(random, 9, 12), "none")
    own = _entries(twins.own)
    assert own == _entries(twins.java)
    assert len(own) == 6


def test_changes_outlive_their_snapshots_where_the_options_say_so(
    tmp_path: Path, oracle: Oracle
) -> None:
    options = {
        **INPUT, "bucket": "1", "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2",
        "snapshot.time-retained": "0 ms", "changelog.num-retained.min": "5",
        "changelog.num-retained.max": "6", "changelog.time-retained": "0 ms",
    }  # fmt: skip
    table = native_table(tmp_path, COLUMNS, keys=["k"], options=options)
    random = Random(1)
    for _ in range(9):
        put(table, _changes(random, 4, 5))
    all_changes = oracle.changelog(tmp_path, "db", "t", "--from", 1)
    assert len(all_changes) == 45
    settings, now_ms = expire_settings(table.schema.options), NOW_MS + 3_600_000
    expire_snapshots(table, settings, now_ms)
    expire_changelogs(table, settings, now_ms)
    first = changelog_ids(table)[0]
    kept = [all_change for all_change in all_changes if all_change["_snapshot"] >= first]
    assert oracle.changelog(tmp_path, "db", "t", "--from", first) == kept
    assert {one["_snapshot"] for one in kept} == set(range(first, 10)) and 1 < first < 8
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_keys_that_move_between_partitions_are_reported_step_by_step(
    engine: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = {**INPUT, "bucket": "-1", "merge-engine": engine}
    if engine != "deduplicate":
        options[f"{engine}.remove-record-on-delete"] = "true"
    columns = [("k", "INT"), ("p", "INT"), ("v", "INT")]
    table = native_table(tmp_path, columns, keys=["k"], partitions=["p"], options=options)
    random = Random(3)
    for step in range(4):
        rows = [
            {"k": random.randrange(4), "p": random.randrange(3), "v": step * 10 + n,
             "_kind": random.choice([0, 2, 2, 3])}
            for n in range(8)
        ]  # fmt: skip
        Batch(table).write(rows).commit()
    left: dict[tuple[int, int], Any] = {}
    for change in oracle.changelog(tmp_path, "db", "t"):
        kind, where = change["rowkind"], (change["k"], change["p"])
        left.pop(where, None)
        if kind in ("+I", "+U"):
            left[where] = {name: change[name] for name in ("k", "p", "v")}
    read = oracle.read(tmp_path, "db", "t")
    assert sorted(left.values(), key=str) == sorted(read, key=str)
    assert len({row["k"] for row in read}) == len(read) > 0
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []


def test_a_table_that_java_goes_on_with_has_one_changelog(tmp_path: Path, oracle: Oracle) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["k"], options={**INPUT, "bucket": "1"})
    put(table, [{"k": 1, "v": "a"}, {"k": 1, "v": "a", "_kind": 1}, {"k": 1, "v": "b", "_kind": 2}])
    oracle.append(tmp_path, "db", "t", [{"k": 1, "v": "c", "_kind": "+U"}], tmp_path)
    put(table, [{"k": 1, "v": "c", "_kind": 3}])
    changes = [(one["rowkind"], one["v"]) for one in oracle.changelog(tmp_path, "db", "t")]
    assert changes == [("+I", "a"), ("-U", "a"), ("+U", "b"), ("+U", "c"), ("-D", "c")]
    own = [(row["rowkind"], row["v"]) for row in read_changelog(table, 1).to_pylist()]
    assert own == changes
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []


def test_an_update_that_sets_its_sequence_field_back_ends_as_in_java(
    tmp_path: Path, oracle: Oracle
) -> None:
    twins = CompactTwins(oracle, tmp_path, COLUMNS, {**INPUT, "bucket": "1", "sequence.field": "n"})
    twins.step([{"k": 1, "v": "a", "n": 10}, {"k": 2, "v": "a", "n": 10}], "none")
    back = [{"k": 1, "v": "a", "n": 10, "_kind": 1}, {"k": 1, "v": "b", "n": 5, "_kind": 2}]
    twins.step([*back, {"k": 2, "v": "b", "n": 5, "_kind": 2}], "none")
    assert twins.own_rows() == twins.java_rows() == [{"k": 2, "v": "a", "n": 10}]
    own, java = twins.changes()
    assert own == java


WRONG: Any = {
    "no key": ([], {}),
    "first-row": (["k"], {"merge-engine": "first-row"}),
    "unknown": (["k"], {"changelog-producer": "output"}),
    "overwrites and lookup": (
        ["k"], {"changelog-producer": "lookup", "streaming-read-overwrite": "true"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_changelogs_that_java_refuses_are_refused(
    name: str, tmp_path: Path, oracle: Oracle
) -> None:
    keys, more = WRONG[name]
    options = {"bucket": "1", "bucket-key": "k", **INPUT, **more}
    with pytest.raises(ConfigError, match="changelog-producer"):
        native_table(tmp_path / "own", COLUMNS, keys=keys, options=options)
    fields = [{"name": column, "type": t} for column, t in COLUMNS]
    spec = {"fields": fields, "primaryKey": keys, "options": options, "steps": []}
    with pytest.raises(OracleError):
        oracle.write_spec(spec, tmp_path / "java", tmp_path)

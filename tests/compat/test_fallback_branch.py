"""`scan.fallback-branch`: Java and we read the same partitions of the same branch."""

import json
from pathlib import Path
from typing import Any

import pytest

import ingestd.paimon as paimon
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, SetOption
from ingestd.paimon.table.commit.overwrite import drop_partitions
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.command_line import run_command
from tests.support.native_tables import NOW_MS, alter, native_table, rows_table, write
from tests.support.oracle import Oracle, OracleError

pytestmark = pytest.mark.compat
Rows = list[dict[str, Any]]
Capture = pytest.CaptureFixture[str]
COLUMNS = [("dt", "STRING"), ("id", "INT NOT NULL"), ("v", "STRING")]
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"keys": ["dt", "id"], "options": {"bucket": "2"}},
    "append": {"options": {"bucket": "-1"}},
    "vectors": {
        "keys": ["dt", "id"],
        "options": {"bucket": "1", "deletion-vectors.enabled": "true"},
    },
    "first row": {"keys": ["dt", "id"], "options": {"bucket": "1", "merge-engine": "first-row"}},
}


def put(table: FileStoreTable, second: int, *rows: tuple[str | None, int, str]) -> None:
    """One snapshot at a second after the creation of the table."""
    state = load_state(table)
    cells = [{"dt": dt, "id": id_, "v": v} for dt, id_, v in rows]
    messages = write(table, state, rows_table(table.schema, cells, state.max_sequence_number + 1))
    committable = ManifestCommittable(second, tuple(messages))
    commit(table, "us", committable, state=state, now_ms=NOW_MS + second * 1000)


def branched(folder: Path, kind: str) -> FileStoreTable:
    """Snapshots of the table at seconds 1, 3 and 5, of its branch `fb` at 2 and 4."""
    table = native_table(folder, COLUMNS, partitions=["dt"], **KINDS[kind])
    branch = create_branch(table, "fb")
    put(table, 1, ("a", 1, "main"), ("a", 2, "main"))
    put(branch, 2, ("a", 1, "fb"), ("a", 9, "fb"), ("b", 1, "fb"), ("b", 2, "fb"))
    put(table, 3, ("c", 1, "main"), ("a", 2, "main again"))
    put(branch, 4, ("c", 7, "fb"), ("d", 1, "fb"), ("b", 2, "fb again"))
    for number, name in ((1, "early"), (2, "late")):
        create_tag(table, name, read_snapshot(table.io, table.paths, number), now_ms=NOW_MS)
    table = alter(table, SetOption("scan.fallback-branch", "fb"))
    put(table, 5, (None if kind == "append" else "z", 5, "main"))
    return table


def ours(capsys: Capture, warehouse: Path, *flags: object) -> list[str] | str:
    done = run_command(capsys, "read", warehouse, "db.t", *flags)
    return done.err if done.code else sorted(done.out.splitlines())


def of_java(oracle: Oracle, warehouse: Path, *flags: object) -> list[str]:
    return sorted(oracle.read_lines(warehouse, "db", "t", *flags))


def where(filter_: str) -> str:
    column, value = filter_.split("=")
    return filter_ if column == "id" else f"{column} = '{value}'"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_partitions_that_the_table_lacks_are_those_of_the_branch(
    oracle: Oracle, tmp_path: Path, capsys: Capture, kind: str
) -> None:
    branched(tmp_path, kind)
    oracle.compact(tmp_path, "db", "t")
    oracle.compact(tmp_path, "db", "t$branch_fb")
    rows = ours(capsys, tmp_path)
    assert rows == of_java(oracle, tmp_path)
    last = None if kind == "append" else "z"
    assert {(row["dt"], row["v"].split()[0]) for row in map(json.loads, rows)} == {
        ("a", "main"), ("b", "fb"), ("c", "main"), ("d", "fb"), (last, "main"),
    }  # fmt: skip
    for filter_ in ("dt=b", "dt=a", "dt=e", "id=1", "v=fb", "v=main"):
        found = ours(capsys, tmp_path, "--where", where(filter_))
        assert found == of_java(oracle, tmp_path, "--filter", filter_), filter_
    shown = paimon.open(f"{tmp_path}/db.t")
    assert shown.count() == shown.count(where="id < 100") == len(rows)
    assert {row["v"] for row in shown.to_arrow(where="dt = 'b'").to_pylist()} <= {"fb", "fb again"}


def test_a_partition_with_rows_that_no_reader_sees_is_that_of_the_branch(
    oracle: Oracle, tmp_path: Path, capsys: Capture
) -> None:
    """Files of level 0 are hidden until a compaction; then the partition is the table's own."""
    branched(tmp_path, "vectors")
    oracle.compact(tmp_path, "db", "t$branch_fb")
    hidden = ours(capsys, tmp_path)
    assert hidden == of_java(oracle, tmp_path)
    assert {json.loads(row)["v"].split()[0] for row in hidden} == {"fb"}


@pytest.mark.parametrize(
    "flags",
    [("--snapshot", 1), ("--snapshot", 2), ("--snapshot", 3), ("--tag", "early")],
    ids=lambda flags: " ".join(map(str, flags)),
)
def test_a_snapshot_and_a_tag_name_a_time_of_the_branch(
    oracle: Oracle, tmp_path: Path, capsys: Capture, flags: tuple[object, ...]
) -> None:
    """Java reads snapshot 1 of a branch that is younger than the snapshot, and so do we."""
    table = branched(tmp_path, "keyed")
    alter(table, AddColumn("w", parse_type("INT")))
    alter(on_branch(table, "fb"), AddColumn("w", parse_type("INT")))
    assert ours(capsys, tmp_path, *flags) == of_java(oracle, tmp_path, *flags)


@pytest.mark.parametrize("second", [2, 3, 4, 9])
def test_a_time_is_one_of_the_branch_too(
    oracle: Oracle, tmp_path: Path, capsys: Capture, second: int
) -> None:
    branched(tmp_path, "keyed")
    millis = NOW_MS + second * 1000
    moment = f"2023-11-14T22:13:{20 + second}Z"
    java = of_java(oracle, tmp_path, "--option", f"scan.timestamp-millis={millis}")
    assert ours(capsys, tmp_path, "--as-of", moment) == java


def test_a_tag_is_one_of_the_time_of_its_snapshot(tmp_path: Path, capsys: Capture) -> None:
    """Java looks the tag up in the table instead of the branch, and finds no other partition."""
    branched(tmp_path, "keyed")
    rows = ours(capsys, tmp_path, "--tag", "late")
    assert rows == ours(capsys, tmp_path, "--snapshot", 2)
    assert {json.loads(row)["dt"] for row in rows} == {"a", "b", "c"}


def test_a_time_before_the_branch_is_one_of_the_table_alone(
    oracle: Oracle, tmp_path: Path, capsys: Capture
) -> None:
    """Java refuses such a read."""
    branched(tmp_path, "keyed")
    rows = ours(capsys, tmp_path, "--as-of", "2023-11-14T22:13:21Z")
    assert [json.loads(row)["dt"] for row in rows] == ["a", "a"]
    with pytest.raises(OracleError, match="no snapshot earlier"):
        of_java(oracle, tmp_path, "--option", f"scan.timestamp-millis={NOW_MS + 1000}")


def test_keys_are_looked_up_in_the_branch_where_the_table_lacks_the_partition(
    tmp_path: Path, capsys: Capture
) -> None:
    branched(tmp_path, "keyed")
    keys = ["dt=a,id=1", "dt=a,id=9", "dt=b,id=2", "dt=d,id=1", "dt=e,id=1"]
    done = run_command(capsys, "get", tmp_path, "db.t", *keys)
    assert done.code == 0, done.err
    found = [tuple(json.loads(line).values()) for line in done.out.splitlines()]
    assert sorted(found) == [("a", 1, "main"), ("b", 2, "fb again"), ("d", 1, "fb")]


def test_an_append_table_with_a_branch_that_has_a_key(
    oracle: Oracle, tmp_path: Path, capsys: Capture
) -> None:
    """The example of Paimon's documents: a branch for streams, with a key of its own."""
    table = native_table(tmp_path, COLUMNS, partitions=["dt"], options={"bucket": "-1"})
    create_branch(table, "fb")
    keyed = [{"op": "option", "key": k, "value": v} for k, v in KEY_OPTIONS.items()]
    spec = {"table": "t$branch_fb", "existing": True, "steps": [{"alter": keyed}]}
    oracle.write_spec(spec, tmp_path, tmp_path)
    branch = on_branch(table, "fb")
    assert branch.schema.primary_keys == ("dt", "id")
    put(branch, 1, ("a", 1, "fb"), ("b", 1, "fb"))
    put(branch, 2, ("b", 1, "fb again"))
    table = alter(table, SetOption("scan.fallback-branch", "fb"))
    before = ours(capsys, tmp_path)
    assert before == of_java(oracle, tmp_path)
    assert len(before) == 2, "the table itself has no snapshot yet"
    put(table, 3, ("a", 5, "main"), ("a", 5, "main"))
    after = ours(capsys, tmp_path)
    assert after == of_java(oracle, tmp_path)
    assert len(after) == 3
    drop_partitions(table, [parse_partition_spec(table, "dt=a")], now_ms=NOW_MS + 9000)
    assert ours(capsys, tmp_path) == of_java(oracle, tmp_path) == before


KEY_OPTIONS = {"primary-key": "dt,id", "bucket": "2"}


def test_java_writes_both_branches(oracle: Oracle, tmp_path: Path, capsys: Capture) -> None:
    branched(tmp_path, "keyed")
    row = {"dt": "e", "id": 1, "v": "java"}
    oracle.append(tmp_path, "db", "t$branch_fb", [row, {**row, "dt": "a"}], tmp_path)
    assert ours(capsys, tmp_path) == of_java(oracle, tmp_path)
    oracle.append(tmp_path, "db", "t", [{**row, "id": 2}], tmp_path)
    rows = ours(capsys, tmp_path)
    assert rows == of_java(oracle, tmp_path)
    assert [row for row in map(json.loads, rows) if row["dt"] == "e"] == [{**row, "id": 2}]
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []


def test_what_java_refuses_is_refused(oracle: Oracle, tmp_path: Path, capsys: Capture) -> None:
    table = branched(tmp_path, "keyed")
    alter(on_branch(table, "fb"), AddColumn("w", parse_type("INT")))
    assert "its fallback branch 'fb' has other columns" in ours(capsys, tmp_path)
    with pytest.raises(OracleError, match="does not have the same row type"):
        oracle.read(tmp_path, "db", "t")
    alter(table, SetOption("scan.fallback-branch", "none"))
    assert "has no branch 'none'; its branches: main, fb" in ours(capsys, tmp_path)


def test_added_rows_are_refused(tmp_path: Path, capsys: Capture) -> None:
    alter(branched(tmp_path, "keyed"), SetOption("incremental-between", "1,2"))
    assert "'scan.fallback-branch' exclude each other" in ours(capsys, tmp_path)

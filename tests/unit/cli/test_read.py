import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from tests.support.command_line import run_command
from tests.support.native_tables import alter, native_table, put

Capture = pytest.CaptureFixture[str]
LIST = {"type": "ARRAY", "element": "INT"}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    columns = [("id", "INT"), ("v", "STRING"), ("n", LIST)]
    table = native_table(tmp_path, columns, keys=["id"], options={"bucket": "2"})
    rows = [{"id": n, "v": f"v{n}", "n": [n]} for n in range(1, 12)]
    put(table, rows)
    table = alter(table, AddColumn("w", parse_type("DECIMAL(5, 1)")))
    put(table, [{"id": 1, "v": 'a,"ü"', "n": None}, {"id": 2, "_kind": 3}])
    return tmp_path


def lines(capsys: Capture, *arguments: object) -> list[str]:
    done = run_command(capsys, "read", *arguments)
    assert done.code == 0, done.err
    return done.out.splitlines()


def test_rows_are_canonical_json_lines_in_canonical_order(warehouse: Path, capsys: Capture) -> None:
    found = lines(capsys, warehouse, "db.t")
    assert len(found) == 10
    assert found[0] == r'{"id":1,"v":"a,\"ü\"","n":null,"w":null}'
    assert found[1].startswith('{"id":10,')
    assert found == sorted(found)
    assert lines(capsys, warehouse, "db.t", "--json") == found


def test_a_snapshot_is_shown_as_it_was(warehouse: Path, capsys: Capture) -> None:
    found = lines(capsys, warehouse, "db.t", "--snapshot", 1)
    assert len(found) == 11
    assert found[0] == '{"id":1,"v":"v1","n":[1]}'


def test_changes_come_with_snapshot_and_kind(warehouse: Path, capsys: Capture) -> None:
    found = [json.loads(line) for line in lines(capsys, warehouse, "db.t", "--changelog")]
    assert len(found) == 13
    assert [one["_snapshot"] for one in found] == [1] * 11 + [2] * 2
    assert {(one["id"], one["rowkind"]) for one in found[11:]} == {(1, "+I"), (2, "-D")}
    later = lines(capsys, warehouse, "db.t", "--changelog", "--from", 2, "--to", 2)
    assert len(later) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--changelog", "--snapshot", "1"], "--from and --to"),
        (["--from", "1", "--snapshot", "1"], "--from and --to"),
        (["--to", "1", "--as-of", "2024-01-01"], "--from and --to"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    warehouse: Path, capsys: Capture, options: list[str], message: str
) -> None:
    done = run_command(capsys, "read", warehouse, "db.t", *options)
    assert done.code == 2
    assert message in done.err


def test_csv_has_the_same_values(warehouse: Path, capsys: Capture) -> None:
    done = run_command(capsys, "read", warehouse, "db.t", "--format", "csv", "--limit", 2)
    header, first, second = csv.reader(io.StringIO(done.out))
    assert header == ["id", "v", "n", "w"]
    assert first == ["1", 'a,"ü"', "", ""]
    assert second == ["10", "v10", "[10]", ""]


def test_parquet_goes_to_a_file(warehouse: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "out.parquet"
    assert lines(capsys, warehouse, "db.t", "-f", "parquet", "-o", path) == []
    rows = pq.read_table(path)
    assert rows.column_names == ["id", "v", "n", "w"]
    assert {*rows["id"].to_pylist()} == {1, *range(3, 12)}


def test_parquet_goes_to_a_pipe(warehouse: Path) -> None:
    code = "from ingestd.cli.main import main; main()"
    command = [sys.executable, "-c", code, "read", str(warehouse), "db.t", "-f", "parquet"]
    done = subprocess.run([*command, "--limit", "4"], capture_output=True, check=True, timeout=180)
    assert pq.read_table(io.BytesIO(done.stdout)).num_rows == 4


def test_json_lines_can_go_to_a_file(warehouse: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "out.jsonl"
    assert lines(capsys, warehouse, "db.t", "-o", path) == []
    assert path.read_text(encoding="utf-8").splitlines() == lines(capsys, warehouse, "db.t")


def test_a_table_for_people_stops_and_says_so(warehouse: Path, capsys: Capture) -> None:
    text = "\n".join(lines(capsys, warehouse, "db.t", "-f", "table", "--limit", 3))
    assert "v11" in text
    assert "7 more rows" in text
    assert "more rows" not in "\n".join(lines(capsys, warehouse, "db.t", "-f", "table"))


def test_an_empty_table_has_no_lines_but_a_header(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("id", "INT")], keys=["id"])
    assert lines(capsys, tmp_path, "db.t") == []
    assert lines(capsys, tmp_path, "db.t", "-f", "csv") == ["id"]
    path = tmp_path / "empty.parquet"
    lines(capsys, tmp_path, "db.t", "-f", "parquet", "-o", path)
    assert pq.read_table(path).column_names == ["id"]


def test_a_snapshot_that_does_not_exist_is_an_error(warehouse: Path, capsys: Capture) -> None:
    done = run_command(capsys, "read", warehouse, "db.t", "--snapshot", 9)
    assert done.code == 2
    assert "snapshots 1 to 2 exist" in done.err


def test_a_table_for_people_does_not_go_to_a_file(
    warehouse: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "rows.txt"
    done = run_command(capsys, "read", warehouse, "db.t", "--format", "table", "-o", file)
    assert (done.code, "--output" in done.err, file.exists()) == (2, True, False)


def test_a_file_keeps_what_it_had_until_all_rows_are_there(
    warehouse: Path, tmp_path: Path, capsys: Capture
) -> None:
    file, link = tmp_path / "rows.jsonl", tmp_path / "link"
    file.write_text("before")
    link.symlink_to(file)
    data = next((warehouse / "db.db/t").glob("bucket-*/*"))
    kept = data.read_bytes()
    data.write_bytes(b"damaged")
    assert run_command(capsys, "read", warehouse, "db.t", "-o", link).code == 4
    assert (file.read_text(), len(list(tmp_path.glob("*rows.jsonl*")))) == ("before", 1)
    data.write_bytes(kept)
    assert run_command(capsys, "read", warehouse, "db.t", "-o", link).code == 0
    assert (file.read_text().startswith("{"), link.is_symlink()) == (True, True)


def test_tables_of_the_catalog_are_read(warehouse: Path, capsys: Capture) -> None:
    (row,) = [json.loads(line) for line in lines(capsys, warehouse, "sys.tables")]
    assert (row["database_name"], row["table_name"], row["primary_key"]) == ("db", "t", True)
    bucket = ("--where", "key = 'bucket'", "--columns", "table_name,value")
    assert lines(capsys, warehouse, "sys.all_table_options", *bucket) == [
        '{"table_name":"t","value":"2"}'
    ]
    assert lines(capsys, warehouse, "sys.partitions") == []
    for table, flag in (("sys.catalog_options", ()), ("sys.tables", ("--snapshot", 1))):
        assert run_command(capsys, "read", warehouse, table, *flag).code == 2

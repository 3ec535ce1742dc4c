"""Rows of a table as programs ask for them."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.errors import ConfigError
from ingestd.paimon.library import scan
from ingestd.paimon.library.open_table import Table
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.retention.tags import create_tag
from tests.support.native_tables import NOW_MS, alter, native_table, put

COLUMNS = [("id", "INT"), ("v", "STRING")]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three snapshots: 1 and 2; 2 again and 3; 1 deleted; the last two with a column more."""
    native = native_table(tmp_path, COLUMNS, keys=["id"], options={"bucket": "2"})
    put(native, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    native = alter(native, AddColumn("w", parse_type("INT")))
    put(native, [{"id": 2, "v": "B", "w": 2}, {"id": 3, "v": "c", "w": 3}])
    put(native, [{"id": 1, "_kind": 3}])
    return paimon.open(f"{tmp_path}/db.t")


def ids(rows: pa.Table) -> list[Any]:
    return sorted(rows.column("id").to_pylist())


def test_the_rows_of_now_in_the_columns_asked_for(table: Table) -> None:
    rows = table.to_arrow(columns=["v", "id"], where="id > 1 AND w < 3")
    assert rows.to_pylist() == [{"v": "B", "id": 2}]


def test_the_rows_of_a_snapshot_have_the_columns_of_their_time(table: Table) -> None:
    rows = table.to_arrow(snapshot=1)
    assert rows.column_names == ["id", "v"]
    assert ids(rows) == [1, 2]
    assert ids(table.to_arrow(as_of=datetime.fromtimestamp(NOW_MS / 1000, UTC))) == [2, 3]
    assert ids(table.to_arrow(as_of="2030-01-01T00:00:00Z")) == [2, 3]


def test_the_rows_that_a_tag_keeps(table: Table) -> None:
    newest = table.snapshots()[1]
    create_tag(table.files, "kept", newest, now_ms=NOW_MS)
    assert table.tags() == ["kept"]
    assert ids(table.to_arrow(tag="kept")) == [1, 2, 3]


def test_rows_and_changes_between_two_snapshots(table: Table) -> None:
    assert ids(table.to_arrow(between=(1, 2))) == [2, 3]
    changes = table.changes(between=(1, 3), columns=["rowkind", "id"]).to_arrow().to_pylist()
    assert sorted((change["id"], change["rowkind"]) for change in changes) == [
        (1, "-D"),
        (2, "+I"),
        (3, "+I"),
    ]
    assert ids(table.changes(where="rowkind = '-D'").to_arrow()) == [1]


def test_a_scan_stays_with_the_snapshot_it_was_made_of(table: Table) -> None:
    scan = table.scan(columns=["id"])
    table.delete([{"id": 2}])
    assert ids(scan.to_arrow()) == [2, 3]
    assert scan.batches().schema == scan.schema == pa.schema([pa.field("id", pa.int32(), False)])
    assert ids(table.to_arrow()) == [3]


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    native_table(tmp_path, COLUMNS)
    rows = paimon.open(f"{tmp_path}/db.db/t").to_arrow()
    assert (rows.num_rows, rows.column_names) == (0, ["id", "v"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"columns": ["nope"]}, "no column nope"),
        ({"where": "nope = 1"}, "nope"),
        ({"snapshot": 1, "tag": "x"}, "give one"),
        ({"tag": "x"}, "no tag 'x'"),
        ({"between": (3, 1)}, "AFTER, UNTIL"),
    ],
)
def test_what_there_is_not_is_refused(table: Table, how: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table.scan(**how)


def test_a_snapshot_that_is_not_there_and_a_column_of_no_changes(table: Table) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        table.scan(snapshot=99)
    with pytest.raises(ConfigError, match="no column nope"):
        table.changes(columns=["nope"])


def test_other_packages_get_the_rows_or_are_named(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(scan, "import_module", absent)
    for name in ("pandas", "polars", "duckdb"):
        with pytest.raises(ConfigError, match=rf"ingestd-paimon\[{name}\]"):
            getattr(table, f"to_{name}")()
    taker = SimpleNamespace(from_arrow=lambda rows: rows)
    monkeypatch.setattr(scan, "import_module", lambda name: taker)
    assert ids(table.to_polars()) == [2, 3]
    assert ids(table.to_duckdb().read_all()) == [2, 3]
    own = SimpleNamespace(from_arrow=lambda rows: ["mine", rows.read_all().num_rows])
    assert table.scan().to_duckdb(own) == ["mine", 2]


def test_rows_with_given_keys(table: Table) -> None:
    assert ids(table.get([{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}])) == [2, 3]
    assert table.get({"id": 3}, columns=["w"]).to_pylist() == [{"w": 3}]
    assert table.get(pa.table({"id": [1, 3]}), snapshot=1).to_pylist() == [{"id": 1, "v": "a"}]
    assert table.get([]).num_rows == 0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([{"id": 1, "v": "a"}], "a key has the columns id, and these have id, v"),
        ([{"ID": 1}], "a key has the columns id, and these have ID"),
        ([{"id": None}], "key column id is null"),
        ([{"id": "x"}], "do not fit"),
    ],
)
def test_keys_that_are_none_are_refused(table: Table, keys: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table.get(keys)


def test_a_table_without_a_primary_key_has_no_row_of_a_key(tmp_path: Path) -> None:
    native_table(tmp_path, COLUMNS)
    with pytest.raises(ConfigError, match="no primary key"):
        paimon.open(f"{tmp_path}/db.t").get({"id": 1})

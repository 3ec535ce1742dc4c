"""Old files in new columns, and changes of schemas, held against Java."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.compat.cast_pairs import columns, rows
from tests.support.native_tables import alter, native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat


def _row(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "ROW", "fields": [{"id": i, "name": n, "type": t}
                                      for i, (n, t) in enumerate(fields)]}  # fmt: skip


INNER = _row(("p", "INT"), ("q", "STRING"))
COLUMNS: list[tuple[str, Any]] = [
    ("k", "INT"),
    ("s", "STRING"),
    ("r", _row(("x", "INT"), ("in", INNER))),
    ("l", {"type": "ARRAY", "element": _row(("a", "INT"))}),
    ("li", {"type": "ARRAY", "element": "INT"}),
    ("m", {"type": "MAP", "key": "STRING", "value": _row(("v", "INT"))}),
    ("mm", {"type": "MAP", "key": "STRING", "value": "INT"}),
]


def test_every_cast_of_old_files_gives_what_java_gives(tmp_path: Path, oracle: Oracle) -> None:
    found = columns()
    fields = [{"name": "id", "type": "INT"}, *({"name": n, "type": old} for n, old, _, _ in found)]
    alters = [{"op": "type", "name": n, "type": new} for n, _, new, _ in found]
    spec = {"fields": fields, "options": {}, "steps": [{"commit": {"rows": rows()}},
                                                       {"alter": alters}]}  # fmt: skip
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    java = [json.loads(line) for line in oracle.read_lines(tmp_path, "db", "t")]
    own = [json.loads(line) for line in sorted_json_lines(read_table(table), table.schema.fields)]
    by_id = {row["id"]: row for row in own}
    differ = {
        (name, str(old), str(new)): (row[name], by_id[row["id"]][name])
        for row in java
        for name, old, new, _ in found
        if row[name] != by_id[row["id"]][name]
    }
    assert differ == {}
    assert len(java) == len(own) == 4


def test_java_goes_on_with_a_table_whose_columns_changed_in_every_way(
    tmp_path: Path, oracle: Oracle
) -> None:
    parse = parse_type
    table = native_table(tmp_path, COLUMNS, keys=["k"], options={"bucket": "1"})
    first = {"k": 1, "s": "a", "r": (1, (2, "z")), "l": [(1,), None], "li": [1, None],
             "m": [("k", (5,))], "mm": [("a", 1)]}  # fmt: skip
    put(table, [first, {"k": 2}])
    table = alter(
        table,
        AddColumn("first", parse("INT"), "c", Move(MoveType.FIRST)),
        AddColumn("after", parse("STRING"), None, Move(MoveType.AFTER, "k")),
        AddColumn("before", parse("STRING"), None, Move(MoveType.BEFORE, "r")),
        AddColumn(("r", "in", "n"), parse("DOUBLE"), None, Move(MoveType.FIRST)),
        UpdateColumnType(("r", "in", "p"), parse("BIGINT")),
        RenameColumn(("r", "in", "q"), "qq"),
        AddColumn(("l", "element", "b"), parse("STRING")),
        UpdateColumnType(("li", "element"), parse("BIGINT")),
        UpdateColumnType(("m", "value", "v"), parse("STRING")),
        UpdateColumnType(("mm", "value"), parse("DOUBLE")),
        RenameColumn("s", "text"),
        UpdateColumnComment(("r", "x"), "note"),
        UpdateColumnPosition("li", Move(MoveType.LAST)),
        UpdateColumnDefaultValue("text", "'given'"),
        UpdateColumnDefaultValue("after", "x"),
        UpdateComment("table"),
        UpdateColumnNullability("k", False),
        SetOption("write-only", "true"),
    )
    second = {"k": 3, "first": 7, "r": {"x": 1, "in": {"n": 1.5, "p": 2**40, "qq": "w"}},
              "l": [{"a": 1, "b": "x"}], "m": [("z", ("q",))], "mm": [("z", 2.5)]}  # fmt: skip
    put(table, [second, {"k": 1, "text": "n"}])
    table = alter(table, DropColumn(("r", "x")), DropColumn("first"), RenameColumn("k", "key"))
    put(table, [{"key": 9}])
    oracle.append(tmp_path, "db", "t", [{"key": 10}], tmp_path)
    oracle.compact(tmp_path, "db", "t")
    table = open_native(tmp_path)
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(tmp_path, "db", "t")
    found = {row["key"]: row for row in map(json.loads, lines)}
    assert found[9]["text"] == found[10]["text"] == "given"
    assert found[2]["text"] is None
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []
    assert verify(table) == []


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_row_of_which_every_field_is_new_is_null_in_old_files(
    file_format: str, tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    row = _row(("q", "INT"))
    columns: list[tuple[str, Any]] = [
        ("k", "INT"), ("r", row), ("l", {"type": "ARRAY", "element": row}),
        ("m", {"type": "MAP", "key": "STRING", "value": row}),
        ("o", _row(("i", row), ("n", "INT"))),
    ]  # fmt: skip
    options = {"bucket": "1", "file.format": file_format}
    table = native_table(tmp_path, columns, keys=["k"], options=options)
    cell = {"q": 1}
    put(table, [{"k": 1, "r": cell, "l": [cell], "m": [("a", cell)], "o": {"i": cell, "n": 2}}])
    paths = [("r",), ("l", "element"), ("m", "value"), ("o", "i")]
    table = alter(table, *(AddColumn((*path, "x"), parse_type("INT")) for path in paths))
    table = alter(table, *(DropColumn((*path, "q")) for path in paths))
    expected = [{"k": 1, "r": None, "l": None, "m": None, "o": {"i": None, "n": 2}}]
    for java in (oracle, oracle_2):
        assert java.read(tmp_path, "db", "t") == expected
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert [json.loads(line) for line in lines] == expected


def test_the_same_changes_make_the_same_schema_file(tmp_path: Path, oracle: Oracle) -> None:
    fields = [{"name": name, "type": t} for name, t in COLUMNS]
    fields[0]["type"] = "INT NOT NULL"
    alters = [
        {"op": "add", "name": ["r", "in", "n"], "type": "DOUBLE", "first": True},
        {"op": "add", "name": "again", "type": COLUMNS[2][1]},
        {"op": "rename", "name": ["r", "in", "q"], "to": "qq"},
        {"op": "type", "name": ["li", "element"], "type": "BIGINT"},
        {"op": "move", "name": "s", "after": "m"},
        {"op": "drop", "name": "mm"},
    ]
    spec = {"fields": fields, "primaryKey": ["k"], "options": {"bucket": "1"},
            "steps": [{"alter": alters}]}  # fmt: skip
    oracle.write_spec(spec, tmp_path / "java", tmp_path)
    table = native_table(tmp_path / "own", COLUMNS, keys=["k"], options={"bucket": "1"})
    alter(
        table,
        AddColumn(("r", "in", "n"), parse_type("DOUBLE"), None, Move(MoveType.FIRST)),
        AddColumn("again", parse_type(COLUMNS[2][1])),
        RenameColumn(("r", "in", "q"), "qq"),
        UpdateColumnType(("li", "element"), parse_type("BIGINT")),
        UpdateColumnPosition("s", Move(MoveType.AFTER, "m")),
        DropColumn("mm"),
    )
    documents = [
        json.loads((tmp_path / who / "db.db/t/schema/schema-1").read_text()) | {"timeMillis": 0}
        for who in ("java", "own")
    ]
    assert documents[0] == documents[1]

from dataclasses import replace

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ingestd.paimon.spec.table_schema import TableSchema

INT, BIGINT, STRING = parse_type("INT"), parse_type("BIGINT"), parse_type("STRING")
COLUMNS = [("dt", STRING), ("k", INT), ("v", INT)]


def base(**options: str) -> TableSchema:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    return new_schema(COLUMNS, ("dt", "k"), ("dt",), {"bucket": "2", **named}, 1)


def changed(*changes: SchemaChange, schema: TableSchema | None = None) -> TableSchema:
    return apply_changes(schema or base(), changes, 99)


def test_every_change_makes_the_next_version() -> None:
    made = changed()
    assert (made.id, made.time_millis) == (1, 99)
    assert replace(made, id=0, time_millis=1) == base()


def test_added_columns_get_new_ids_at_the_end() -> None:
    row = DataType("ROW", fields=(DataField(7, "x", INT), DataField(8, "y", INT)))
    made = changed(AddColumn("r", row, "a row"), AddColumn("w", INT))
    assert [(field.name, field.id) for field in made.fields[3:]] == [("r", 3), ("w", 6)]
    assert [field.id for field in made.field("r").type.fields] == [4, 5]
    assert made.field("r").description == "a row"
    assert made.highest_field_id == 6


def test_the_id_of_a_dropped_column_is_never_given_again() -> None:
    made = changed(AddColumn("w", INT), DropColumn("w"), AddColumn("w", STRING))
    assert made.field("w").id == 4
    assert made.highest_field_id == 4


def test_added_columns_may_stand_before_the_partition() -> None:
    schema = base(**{"add-column-before-partition": "true"})
    assert changed(AddColumn("w", INT), schema=schema).field_names == ("w", "dt", "k", "v")


def test_a_new_type_keeps_the_id() -> None:
    made = changed(UpdateColumnType("v", BIGINT))
    assert made.field("v") == DataField(2, "v", BIGINT)


def test_not_null_may_be_given_up() -> None:
    schema = new_schema([("a", INT.not_null()), ("b", INT)], (), (), {}, 0)
    assert changed(UpdateColumnType("a", BIGINT), schema=schema).field("a").type == BIGINT


def test_a_renamed_column_is_renamed_everywhere() -> None:
    schema = base(**{"bucket-key": "k", "fields.k.stats-mode": "full"})
    made = changed(RenameColumn("k", "id"), schema=schema)
    assert made.field("id").id == 1
    assert made.primary_keys == ("dt", "id")
    assert made.options["bucket-key"] == "id"
    assert made.options["fields.id.stats-mode"] == "full"


def test_options_are_set_and_removed() -> None:
    made = changed(SetOption("write-only", "true"), SetOption("bucket", "2"))
    assert made.options == {"bucket": "2", "write-only": "true"}
    assert changed(RemoveOption("write-only"), schema=made).options == {"bucket": "2"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (AddColumn("v", INT), "exists already"),
        (AddColumn("w", INT.not_null()), "add it as nullable"),
        (AddColumn("_KEY_w", INT), "reserved"),
        (UpdateColumnType("w", INT), "unknown column 'w'"),
        (UpdateColumnType("k", BIGINT), "primary key column 'k'"),
        (UpdateColumnType("dt", INT), "partition key column 'dt'"),
        (UpdateColumnType("v", parse_type("DATE")), "no such cast"),
        (UpdateColumnType("v", BIGINT.not_null()), "may hold nulls"),
        (RenameColumn("dt", "day"), "partition key column 'dt'"),
        (RenameColumn("w", "x"), "unknown column 'w'"),
        (RenameColumn("v", "k"), "exists already"),
        (RenameColumn("v", "rowkind"), "reserved"),
        (DropColumn("w"), "unknown column 'w'"),
        (DropColumn("k"), "primary key column 'k'"),
        (DropColumn("dt"), "partition key column 'dt'"),
        (SetOption("bucket", "-1"), "option 'bucket' cannot be changed"),
        (SetOption("merge-engine", "aggregation"), "option 'merge-engine' cannot be changed"),
        (RemoveOption("bucket"), "option 'bucket' cannot be changed"),
    ],
)
def test_what_the_table_cannot_take_is_refused_by_name(change: SchemaChange, message: str) -> None:
    with pytest.raises(SchemaConflictError, match=message):
        changed(change)


def test_columns_that_options_name_cannot_be_dropped() -> None:
    schema = new_schema(COLUMNS, (), (), {"bucket": "2", "bucket-key": "k, v"}, 0)
    with pytest.raises(SchemaConflictError, match="column 'v' of 'bucket-key'"):
        changed(DropColumn("v"), schema=schema)


def test_the_last_column_cannot_be_dropped() -> None:
    schema = new_schema([("a", INT)], (), (), {}, 0)
    with pytest.raises(SchemaConflictError, match="at least one column"):
        changed(DropColumn("a"), schema=schema)


def test_a_table_may_forbid_all_but_widening_casts() -> None:
    schema = base(**{"disable-explicit-type-casting": "true"})
    assert changed(UpdateColumnType("v", BIGINT), schema=schema).field("v").type == BIGINT
    with pytest.raises(SchemaConflictError, match="no such cast"):
        changed(UpdateColumnType("v", STRING), schema=schema)


def test_nulls_may_be_forbidden_where_the_table_allows_it() -> None:
    schema = base(**{"alter-column-null-to-not-null.disabled": "false"})
    made = changed(UpdateColumnType("v", INT.not_null()), schema=schema)
    assert not made.field("v").type.nullable


def test_nullability_of_a_nested_column_leaves_inner_ids_alone() -> None:
    row = DataType("ROW", nullable=False, fields=(DataField(9, "x", INT),))
    schema = new_schema([("a", INT), ("r", row)], (), (), {}, 0)
    kept = schema.field("r").type
    made = changed(UpdateColumnType("r", kept.as_nullable()), schema=schema)
    assert made.field("r").type == kept.as_nullable()


def test_a_refused_change_leaves_the_schema_as_it_was() -> None:
    schema = base()
    with pytest.raises(SchemaConflictError):
        changed(AddColumn("w", INT), DropColumn("k"), schema=schema)
    assert schema == base()


def test_changes_read_as_sentences() -> None:
    assert str(AddColumn("c", DataType("INT"))) == "add c INT"
    decimal = DataType("DECIMAL", precision=10, scale=2)
    assert str(UpdateColumnType("c", decimal)) == "change c to DECIMAL(10, 2)"


NESTED = parse_type(
    {"type": "ARRAY", "element": {"type": "ROW", "fields": [
        {"id": 0, "name": "x", "type": "INT"},
        {"id": 0, "name": "m", "type": {"type": "MAP", "key": "STRING", "value": "INT"}},
    ]}}
)  # fmt: skip


def nested() -> TableSchema:
    return new_schema([("a", INT), ("n", NESTED)], (), (), {}, 1)


def inner(schema: TableSchema) -> dict[str, DataField]:
    element = schema.field("n").type.element
    assert element is not None
    return {field.name: field for field in element.fields}


def test_ids_inside_a_row_are_given_to_children_before_their_parent() -> None:
    row = parse_type(
        {"type": "ROW", "fields": [
            {"id": 0, "name": "in", "type": {"type": "ROW", "fields": [
                {"id": 0, "name": "p", "type": "INT"}]}},
            {"id": 0, "name": "y", "type": "INT"}]}
    )  # fmt: skip
    made = changed(AddColumn("r", row)).field("r")
    assert (made.id, [field.id for field in made.type.fields]) == (3, [5, 6])
    assert made.type.fields[0].type.fields[0].id == 4


def test_columns_inside_others_are_added_renamed_retyped_and_dropped() -> None:
    made = changed(
        AddColumn(("n", "element", "new"), STRING, "c", Move(MoveType.BEFORE, "m")),
        RenameColumn(("n", "element", "x"), "xx"),
        UpdateColumnType(("n", "element", "m", "value"), BIGINT),
        schema=nested(),
    )
    assert list(inner(made)) == ["xx", "new", "m"]
    assert inner(made)["new"] == DataField(4, "new", STRING, "c")
    assert inner(made)["xx"].id == 2
    assert inner(made)["m"].type.value == BIGINT
    dropped = changed(DropColumn(("n", "element", "x")), schema=nested())
    assert list(inner(dropped)) == ["m"]


@pytest.mark.parametrize(
    ("move", "names"),
    [
        (Move(MoveType.FIRST), ["w", "dt", "k", "v"]),
        (Move(MoveType.LAST), ["dt", "k", "v", "w"]),
        (Move(MoveType.AFTER, "dt"), ["dt", "w", "k", "v"]),
        (Move(MoveType.BEFORE, "v"), ["dt", "k", "w", "v"]),
    ],
)
def test_a_new_column_stands_where_it_is_put(move: Move, names: list[str]) -> None:
    assert list(changed(AddColumn("w", INT, None, move)).field_names) == names


def test_columns_move_among_the_others() -> None:
    made = changed(UpdateColumnPosition("dt", Move(MoveType.AFTER, "k")))
    assert made.field_names == ("k", "dt", "v")
    assert changed(UpdateColumnPosition("v", Move(MoveType.FIRST))).field_names == ("v", "dt", "k")


def test_comments_defaults_and_nullability_are_changed() -> None:
    made = changed(
        UpdateColumnComment("v", "note"),
        UpdateColumnDefaultValue("v", "7"),
        UpdateComment("table"),
    )
    assert made.field("v") == DataField(2, "v", INT, "note", "7")
    assert made.comment == "table"
    inside = nested()
    strict = replace(inside, options={"alter-column-null-to-not-null.disabled": "false"})
    filled = changed(UpdateColumnNullability(("n", "element", "x"), False), schema=strict)
    assert not inner(filled)["x"].type.nullable


def test_the_number_of_buckets_may_change_but_not_the_kind() -> None:
    assert changed(SetOption("bucket", "4")).options["bucket"] == "4"
    dynamic = new_schema(COLUMNS, ("dt", "k"), ("dt",), {}, 1)
    with pytest.raises(SchemaConflictError, match="from -1 to 4"):
        changed(SetOption("bucket", "4"), schema=dynamic)


def test_a_table_without_snapshots_takes_any_option_and_may_lose_its_key() -> None:
    schema = new_schema(COLUMNS, ("dt", "k"), (), {}, 1)
    made = apply_changes(schema, [SetOption("merge-engine", "first-row")], 2, has_snapshots=False)
    assert made.options == {"merge-engine": "first-row"}
    assert apply_changes(schema, [DropPrimaryKey()], 2, has_snapshots=False).primary_keys == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (AddColumn(("n", "item", "y"), INT), "'element' is what leads into it"),
        (AddColumn(("a", "y"), INT), "nothing is inside it"),
        (AddColumn(("n", "element", "x"), INT), "exists already"),
        (RenameColumn(("n", "element", "x"), "m"), "exists already"),
        (DropColumn(("n", "element", "z")), "unknown column 'z'"),
        (UpdateColumnType(("n", "element", "x"), parse_type("DATE")), "no such cast"),
        (UpdateColumnType("n", parse_type({"type": "ARRAY", "element": "INT"})), "no such cast"),
        (UpdateColumnNullability("a", False), "may hold nulls"),
        (UpdateColumnPosition("a", Move(MoveType.AFTER, "a")), "next to itself"),
        (UpdateColumnPosition("a", Move(MoveType.FIRST)), "first already"),
        (UpdateColumnPosition("a", Move(MoveType.AFTER, "z")), "unknown column 'z'"),
        (DropPrimaryKey(), "primary key cannot be dropped"),
        (SetOption("bucket-key", "a"), "'bucket-key' cannot be changed"),
        (SetOption("deletion-vectors.enabled", "true"), "rows would come back"),
    ],
)
def test_changes_that_java_refuses_are_refused(change: SchemaChange, message: str) -> None:
    with pytest.raises(SchemaConflictError, match=message):
        changed(change, schema=nested())


def test_options_of_merge_engines_follow_a_renamed_column() -> None:
    options = {"sequence.field": "v", "bucket": "2", "ignore-delete": "true"}
    schema = new_schema([*COLUMNS, ("w", INT)], ("dt", "k"), ("dt",), options, 1)
    made = changed(RenameColumn("v", "vv"), schema=schema)
    assert made.options["sequence.field"] == "vv"
    with pytest.raises(SchemaConflictError, match="true to false"):
        changed(SetOption("ignore-delete", "false"), schema=schema)

from dataclasses import replace

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type
from ingestd.paimon.spec.schema import (
    AddColumn,
    DropColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    TableSchema,
    UpdateColumnType,
    apply_changes,
    new_schema,
)

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
        (UpdateColumnType("w", INT), "there is none"),
        (UpdateColumnType("k", BIGINT), "primary key column 'k'"),
        (UpdateColumnType("dt", INT), "partition key column 'dt'"),
        (UpdateColumnType("v", parse_type("DATE")), "no such cast"),
        (UpdateColumnType("v", BIGINT.not_null()), "may hold nulls"),
        (RenameColumn("dt", "day"), "partition key column 'dt'"),
        (RenameColumn("w", "x"), "there is none"),
        (RenameColumn("v", "k"), "exists already"),
        (RenameColumn("v", "rowkind"), "reserved"),
        (DropColumn("w"), "there is none"),
        (DropColumn("k"), "primary key column 'k'"),
        (DropColumn("dt"), "partition key column 'dt'"),
        (SetOption("bucket", "4"), "option 'bucket' cannot be changed"),
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

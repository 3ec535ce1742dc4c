import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type
from ingestd.paimon.spec.schema import encode_schema, new_schema, parse_schema
from ingestd.paimon.spec.snapshot import parse_snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.spec.table_statistics import parse_statistics
from tests.support.format_vectors import vectors
from tests.support.java_tables import table_files

INT, STRING = parse_type("INT"), parse_type("STRING")


def schema(**changes: object) -> TableSchema:
    given: dict[str, Any] = {
        "columns": [("dt", STRING), ("k", INT), ("v", STRING)],
        "primary_keys": ("dt", "k"),
        "partition_keys": ("dt",),
        "options": {"bucket": "2"},
        "time_millis": 7,
    }
    return new_schema(**{**given, **changes})


@pytest.mark.parametrize("number", range(3))
def test_schemas_of_java_come_back_in_the_same_order(number: int) -> None:
    document = vectors("schema_json_examples")[number]
    parsed = parse_schema(json.dumps(document).encode(), "s")
    again = json.loads(encode_schema(parsed))
    assert again == document
    assert list(again) == list(document)
    assert parse_schema(encode_schema(parsed), "s") == parsed


def test_schema_files_of_java_are_written_back_the_same() -> None:
    files = table_files("*/schema/schema-*")
    assert files
    for path in files:
        parsed = parse_schema(path.read_bytes(), str(path))
        assert json.loads(encode_schema(parsed)) == json.loads(path.read_bytes())


def test_ids_are_given_depth_first_with_parents_before_children() -> None:
    inner = DataType("ROW", fields=(DataField(0, "x", INT), DataField(0, "y", STRING)))
    nested = DataType("MAP", key=STRING, value=DataType("ARRAY", element=inner))
    made = new_schema([("a", INT), ("n", nested), ("z", INT)], (), (), {}, 0)
    assert [field.id for field in made.fields] == [0, 1, 4]
    row = made.field("n").type.value
    assert row is not None
    assert row.element is not None
    assert [field.id for field in row.element.fields] == [2, 3]
    assert made.highest_field_id == 4


def test_primary_key_columns_become_not_null_and_partition_keys_do_not() -> None:
    made = schema(primary_keys=("k",), partition_keys=("dt",))
    assert [field.type.nullable for field in made.fields] == [True, False, True]


def test_trimmed_primary_key_keeps_the_order_of_the_primary_key() -> None:
    made = schema(primary_keys=("v", "dt", "k"))
    assert made.trimmed_primary_keys == ("v", "k")
    assert [field.name for field in made.key_fields] == ["v", "k"]
    assert made.partition_types == (STRING.not_null(),)


def test_keys_may_be_given_as_options_and_are_taken_out_of_them() -> None:
    made = schema(
        primary_keys=(), partition_keys=(),
        options={"primary-key": "dt, k", "partition": "dt", "bucket": "1"},
    )  # fmt: skip
    assert (made.primary_keys, made.partition_keys) == (("dt", "k"), ("dt",))
    assert made.options == {"bucket": "1"}


def test_keys_given_twice_are_refused() -> None:
    with pytest.raises(ConfigError, match="option 'primary-key' is set to 'k'"):
        schema(options={"primary-key": "k"})


def test_old_versions_have_other_defaults() -> None:
    document = {**vectors("schema_json_examples")[0], "version": 1, "options": {}}
    assert parse_schema(json.dumps(document).encode(), "s").options == {
        "bucket": "1",
        "file.format": "orc",
    }
    document["version"] = 2
    assert parse_schema(json.dumps(document).encode(), "s").options == {"file.format": "orc"}


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", b'{"version": 4}', b'{"version": "x"}']
)
def test_broken_schema_file_is_a_format_error_that_names_it(data: bytes) -> None:
    with pytest.raises(FormatError, match="schema file /t/schema/schema-3"):
        parse_schema(data, "/t/schema/schema-3")


def test_unknown_type_in_a_schema_file_names_file_and_column() -> None:
    document = vectors("schema_json_examples")[0]
    broken = {**document, "fields": [{"id": 0, "name": "geo", "type": "GEOMETRY"}]}
    with pytest.raises(FormatError, match=r"schema-9.*GEOMETRY"):
        parse_schema(json.dumps(broken).encode(), "schema-9")


def test_keys_that_are_no_columns_are_a_format_error() -> None:
    document = {**vectors("schema_json_examples")[0], "primaryKeys": ["dt", "ghost"]}
    with pytest.raises(FormatError, match=r"schema-2: keys \['ghost'\]"):
        parse_schema(json.dumps(document).encode(), "schema-2")


def test_schema_travels_between_processes() -> None:
    assert pickle.loads(pickle.dumps(schema())) == schema()


def test_unknown_column_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        schema().field("nobody")
    assert schema().field_names == ("dt", "k", "v")


@pytest.mark.parametrize("read", [parse_schema, parse_snapshot, parse_statistics])
def test_files_that_are_too_deep_to_be_read_are_named(
    read: Callable[[bytes, str], object],
) -> None:
    for data in (b"[" * 100_000, b'{"id": ' + b"[" * 100_000):
        with pytest.raises(FormatError, match="/t/deep"):
            read(data, "/t/deep")

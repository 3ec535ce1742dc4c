import pytest

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.honoured_options import BUCKET_KEY
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_rules import bucket_number

INT = parse_type("INT")
ABC = [("a", INT), ("b", INT), ("c", INT)]


def make(
    columns: list[tuple[str, DataType]] | None = None,
    primary: tuple[str, ...] = (),
    partition: tuple[str, ...] = (),
    **options: str,
) -> None:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    new_schema(ABC if columns is None else columns, primary, partition, named, 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("_SEQUENCE_NUMBER", "reserved"), ("_VALUE_KIND", "reserved"), ("rowkind", "reserved"),
        ("_KEY_a", "reserved"), ("_ROW_ID", "reserved"), ("a", "appears twice"), (" ", "empty"),
    ],
)  # fmt: skip
def test_column_names_that_no_table_can_have_are_refused(name: str, message: str) -> None:
    with pytest.raises(SchemaConflictError, match=message):
        make([*ABC, (name, INT)])


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(SchemaConflictError, match="at least one column"):
        make([])


@pytest.mark.parametrize(
    ("primary", "partition", "message"),
    [
        (("x",), (), "primary key column 'x' is not a column"),
        ((), ("x",), "partition key column 'x' is not a column"),
        (("a", "a"), (), "names a column twice"),
        (("a",), ("a",), "holds partition keys only"),
        (("b", "a"), ("a", "b"), "holds partition keys only"),
    ],
)
def test_keys_that_do_not_fit_the_columns_are_refused(
    primary: tuple[str, ...], partition: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SchemaConflictError, match=message):
        make(primary=primary, partition=partition)


def test_nested_columns_are_no_keys() -> None:
    array = DataType("ARRAY", element=INT)
    with pytest.raises(
        SchemaConflictError, match=r"'n' has type ARRAY<INT> NOT NULL, which cannot"
    ):
        make([*ABC, ("n", array)], primary=("n",))


@pytest.mark.parametrize(
    ("primary", "options", "message"),
    [
        (("a",), {"bucket": "0"}, "above 0"),
        (("a",), {"bucket": "-3"}, "above 0"),
        (("a",), {"bucket": "many"}, "not a whole number"),
        (("a", "b"), {"bucket_key": "a"}, "needs a fixed number of buckets"),
        ((), {"bucket": "2"}, "needs 'bucket-key'"),
        ((), {"bucket": "-2"}, "needs a primary key"),
        (("a",), {"clustering.incremental": "true"}, "needs a table without primary key"),
        (
            (),
            {"clustering.incremental": "true", "bucket": "1", "bucket_key": "a"},
            "'bucket-append-ordered' = 'false'",
        ),
    ],
)
def test_bucket_options_that_contradict_each_other_are_refused(
    primary: tuple[str, ...], options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make(primary=primary, **options)


def test_bucket_key_is_part_of_the_primary_key_and_not_of_the_partition() -> None:
    with pytest.raises(SchemaConflictError, match="must be part of the primary key"):
        make(primary=("a",), bucket="2", bucket_key="b")
    with pytest.raises(SchemaConflictError, match="must not hold partition keys"):
        make(primary=("a", "b"), partition=("a",), bucket="2", bucket_key="a")


def test_sound_tables_are_taken() -> None:
    make(primary=("a", "b"), partition=("a",), bucket="2", bucket_key="b")
    make(bucket="4", bucket_key="a, b")
    make(primary=("b",), partition=("a",), bucket="-1")
    make()


def test_bucket_options_are_read_with_their_defaults() -> None:
    assert bucket_number({}) == -1
    assert BUCKET_KEY.of({}) == ()
    assert BUCKET_KEY.of({"bucket-key": " a,b , "}) == ("a", "b")

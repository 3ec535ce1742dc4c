"""What a table's buckets may not be together with."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.options import (
    refuse_across_partitions,
    refuse_bucket_keys,
    refuse_postponed,
)
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema


def _schema(options: Mapping[str, str], keys: Sequence[str] = ("id",)) -> TableSchema:
    columns = [
        ("id", parse_type("INT")),
        ("at", parse_type("TIMESTAMP(3)")),
        ("day", parse_type("STRING")),
    ]
    return new_schema(columns, keys, ["day"], options, 0)


@pytest.mark.parametrize(
    ("function", "keys", "fits"),
    [
        ("default", ("id", "at"), True), ("mod", ("id",), True), ("mod", ("at",), False),
        ("mod", ("id", "at"), False), ("hive", ("id", "day"), True), ("hive", ("at",), False),
        ("other", ("id",), False),
    ],
)  # fmt: skip
def test_bucket_functions_take_the_keys_that_they_are_defined_for(
    function: str, keys: tuple[str, ...], fits: bool
) -> None:
    schema = _schema({})
    if fits:
        refuse_bucket_keys(schema, function, keys)
        return
    with pytest.raises(UnsupportedError, match=rf"'bucket-function\.type' = '{function}' needs"):
        refuse_bucket_keys(schema, function, keys)


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (refuse_across_partitions, {"rowkind.field": "day"}),
        (refuse_across_partitions, {"ignore-delete": "true"}),
        (refuse_across_partitions, {"deduplicate.ignore-delete": "true"}),
        (refuse_postponed, {"changelog-producer": "input"}),
    ],
)
def test_options_that_cannot_be_kept_are_refused_by_name(
    rule: Callable[[TableSchema], None], options: Mapping[str, str]
) -> None:
    ((name, value),) = options.items()
    with pytest.raises(UnsupportedError, match=rf"option '{name}' = '{value}'"):
        rule(_schema(options))


def test_what_does_no_harm_is_taken() -> None:
    refuse_across_partitions(_schema({"ignore-delete": "false"}))
    refuse_across_partitions(_schema({"ignore-delete": "true", "merge-engine": "partial-update"}))
    for producer in ("none", "lookup", "full-compaction"):
        refuse_postponed(_schema({"changelog-producer": producer}, ("id", "day")))

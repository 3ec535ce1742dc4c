"""Merge options that cannot stand together; Java is asked about more in `tests/compat`."""

from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.merge_checks import rules_with_refusals
from ingestd.paimon.spec.merge_rules import merge_rules
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.table_schema import TableSchema
from tests.support.merge_cases import INTS, MAP, ROWS, TIMED

TYPES: dict[str, Any] = {
    "k": "INT", "i": "INT", "s": "STRING", "v": "VARCHAR(9)", "b": "BOOLEAN", "ints": INTS,
    "rows": ROWS, "map": MAP, "timed": TIMED, "bytes": "BYTES",
}  # fmt: skip


def made(
    options: dict[str, str], partitions: tuple[str, ...] = (), keys: tuple[str, ...] = ("k",)
) -> TableSchema:
    columns = [(name, parse_type(t)) for name, t in TYPES.items()]
    return new_schema(columns, keys, partitions, {"bucket": "1", **options}, 0)


def aggregated(column: str, function: str, **options: str) -> dict[str, str]:
    own = {f"fields.{column}.{name.replace('_', '-')}": text for name, text in options.items()}
    return {"merge-engine": "aggregation", f"fields.{column}.aggregate-function": function, **own}


@pytest.mark.parametrize(
    ("column", "function", "options", "message"),
    [
        ("s", "sum", {}, "'sum' of column 's' needs a number, not STRING"),
        ("s", "product", {}, "needs a number"),
        ("b", "max", {}, "needs a type with an order"),
        ("ints", "min", {}, "needs a type with an order"),
        ("i", "bool_or", {}, "needs BOOLEAN"),
        ("v", "listagg", {}, r"needs STRING, not VARCHAR\(9\)"),
        ("s", "collect", {}, "needs an ARRAY"),
        ("ints", "merge_map", {}, "needs a MAP"),
        ("map", "merge_map_with_keytime", {}, "values that are a ROW of two"),
        ("timed", "merge_map_with_keytime", {"ts_field": "x"}, "needs a field 'x'"),
        ("timed", "merge_map_with_keytime", {"ts_field": "a"}, "needs a text in field 'a'"),
        ("ints", "nested_update", {}, "needs an ARRAY of ROW"),
        ("rows", "nested_update", {"nested_key": "id,x"}, r"needs fields \['x'\]"),
        ("rows", "nested_partial_update", {}, "needs the option 'nested-key'"),
        ("s", "rbm32", {}, "needs BYTES or VARBINARY"),
        ("s", "rbm64", {}, "needs BYTES or VARBINARY"),
        ("i", "count", {}, "'count' of column 'i' does not exist"),
    ],
)
def test_functions_must_fit_their_columns(
    column: str, function: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        made(aggregated(column, function, **options))


def test_functions_that_no_longer_fit_have_the_error_of_their_merge() -> None:
    schema = made(aggregated("i", "sum") | {"fields.s.aggregate-function": "listagg"})
    fields = [replace(f, type=parse_type("DATE")) if f.name == "i" else f for f in schema.fields]
    functions = rules_with_refusals(replace(schema, fields=tuple(fields)), "db.t").functions
    assert functions["i"].refusal == (
        "table db.t: aggregate function 'sum' of column 'i' needs a number, not DATE; set "
        "'fields.i.aggregate-function' to a function of this type, such as 'last_non_null_value'"
    )
    assert [name for name, f in functions.items() if f.refusal is not None] == ["i"]
    assert rules_with_refusals(schema, "db.t") == merge_rules(schema)


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch"])
def test_sketches_exist_and_are_refused_by_name(function: str) -> None:
    schema = made(aggregated("bytes", function))
    for for_write in (False, True):
        with pytest.raises(UnsupportedError, match=f"= '{function}' is not supported"):
            refuse_unsupported(schema, for_write=for_write)


def test_tables_with_functions_that_fit_are_taken() -> None:
    for options in (
        aggregated("rows", "nested_update", nested_key="id", count_limit="3"),
        aggregated("timed", "merge_map_with_keytime"),
        {"merge-engine": "partial-update", "fields.i.sequence-group": "s,ints"},
        {"merge-engine": "first-row", "first-row.ignore-delete": "true"},
        {"sequence.field": "i,s", "rowkind.field": "v"},
    ):
        refuse_unsupported(made(options), for_write=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence.field": "ints"}, "type ARRAY.*has no order"),
        ({"rowkind.field": "i"}, "has type INT; it must be a text"),
        (
            {"merge-engine": "partial-update", "fields.map.sequence-group": "i"},
            "column 'map' has type MAP",
        ),
        (
            {**aggregated("i", "max", ignore_retract="true"),
             "aggregation.remove-record-on-delete": "true"},
            r"'fields\.i\.ignore-retract' contradict",
        ),
        (
            {"merge-engine": "partial-update", "fields.i.sequence-group": "s",
             "ignore-delete": "true", "partial-update.remove-record-on-sequence-group": "i"},
            "remove-record-on-sequence-group' and 'ignore-delete' contradict",
        ),
    ],
)  # fmt: skip
def test_contradictions_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made(options)


def test_a_sequence_field_needs_the_partition_in_the_key() -> None:
    with pytest.raises(ConfigError, match="rows would move between partitions"):
        made({"sequence.field": "i"}, partitions=("s",))
    made({"sequence.field": "i"}, partitions=("s",), keys=("s", "k"))


def test_options_set_later_are_judged_as_well() -> None:
    with pytest.raises(ConfigError, match=r"'sequence\.field' names column 'x'"):
        apply_changes(made({}), [SetOption("sequence.field", "x")], 0)

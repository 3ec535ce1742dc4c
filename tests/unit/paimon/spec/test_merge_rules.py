"""Options on merging as rules."""

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.merge_rules import (
    FieldFunction,
    MergeRules,
    SequenceGroup,
    columns_named,
    merge_rules,
)
from ingestd.paimon.spec.schema import new_schema

COLUMNS = [(name, parse_type("STRING" if name == "t" else "INT")) for name in "kabcst"]


def rules(options: dict[str, str]) -> MergeRules:
    return merge_rules(new_schema(COLUMNS, ["k"], (), options, 0))


def test_without_options_the_newest_row_stays() -> None:
    assert rules({}) == MergeRules()


def test_sequence_and_row_kinds() -> None:
    found = rules(
        {
            "sequence.field": "s, t", "sequence.field.sort-order": "Descending",
            "rowkind.field": "t", "ignore-update-before": "true",
        }
    )  # fmt: skip
    assert (found.sequence_fields, found.descending) == (("s", "t"), True)
    assert (found.rowkind_field, found.ignore_update_before) == ("t", True)
    with pytest.raises(ConfigError, match=r"'sequence\.field\.sort-order' = 'up'"):
        rules({"sequence.field": "s", "sequence.field.sort-order": "up"})


@pytest.mark.parametrize("name", ["ignore-delete", "deduplicate.ignore-delete"])
def test_deletions_are_ignored_by_any_of_the_names(name: str) -> None:
    assert rules({name: "true"}).ignore_delete


def test_every_column_of_an_aggregation_has_a_function() -> None:
    found = rules(
        {
            "merge-engine": "aggregation", "sequence.field": "s",
            "fields.a.aggregate-function": "sum", "fields.a.ignore-retract": "true",
            "fields.t.aggregate-function": "listagg", "fields.t.list-agg-delimiter": ";",
            "fields.t.distinct": "true", "fields.default-aggregate-function": "max",
        }
    )  # fmt: skip
    assert found.functions == {
        "a": FieldFunction("sum", ignore_retract=True),
        "b": FieldFunction("max"),
        "c": FieldFunction("max"),
        "s": FieldFunction("last_value"),
        "t": FieldFunction("listagg", delimiter=";", distinct=True),
    }
    assert rules({"merge-engine": "aggregation"}).functions["a"].name == "last_non_null_value"


def test_groups_have_functions_for_their_columns_only() -> None:
    found = rules(
        {
            "merge-engine": "partial-update", "fields.s,t.sequence-group": "a,b",
            "fields.a.aggregate-function": "sum",
            "fields.c.aggregate-function": "last_non_null_value",
            "partial-update.remove-record-on-sequence-group": "t",
        }
    )  # fmt: skip
    assert found.groups == (SequenceGroup(("s", "t"), ("a", "b"), removes=True),)
    assert set(found.functions) == {"a"}


def test_columns_that_merging_takes_are_read_beside_those_asked_for() -> None:
    assert rules({"sequence.field": "s"}).columns_beside(["k", "a"]) == ("s",)
    group = {"merge-engine": "partial-update", "fields.s.sequence-group": "a"}
    assert rules(group).columns_beside(["k", "a"]) == ("s",)
    assert rules(group).columns_beside(["k", "b"]) == ()
    removing = {**group, "partial-update.remove-record-on-sequence-group": "s"}
    assert rules(removing).columns_beside(["k", "b"]) == ("s",)


def test_a_null_keeps_the_older_value_where_it_does_not_count() -> None:
    group = {"merge-engine": "partial-update", "fields.s.sequence-group": "a,b"}
    found = rules({**group, "fields.b.aggregate-function": "max"})
    assert [found.keeps_older(name) for name in "abc"] == [False, True, True]
    found = rules({"merge-engine": "aggregation", "fields.a.aggregate-function": "last_value"})
    assert [found.keeps_older(name) for name in "ab"] == [False, True]
    assert not rules({}).keeps_older("a")


@pytest.mark.parametrize(
    ("options", "engine", "newest"),
    [
        ({"changelog-producer": "lookup"}, "aggregation", True),
        ({"force-lookup": "true"}, "partial-update", True),
        ({"changelog-producer": "lookup"}, "deduplicate", False),
        ({}, "aggregation", False),
    ],
)
def test_upper_levels_hold_each_other_where_compaction_looks_up(
    options: dict[str, str], engine: str, newest: bool
) -> None:
    assert rules({**options, "merge-engine": engine}).newest_level_only is newest


def test_all_columns_that_options_name() -> None:
    options = {
        "sequence.field": "s", "rowkind.field": "t", "fields.a.stats-mode": "none",
        "fields.g,h.sequence-group": "b,c", "fields.default-aggregate-function": "sum",
    }  # fmt: skip
    assert columns_named(options) == ("s", "t", "a", "g", "h", "b", "c")

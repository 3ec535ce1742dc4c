"""Options that name columns, and those that files are written with."""

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.paimon.spec.schema_apply import (
    check_option_change,
    refuse_named_column,
    rename_in_options,
    without_indexes,
)


def test_a_column_gets_its_new_name_wherever_an_option_names_it() -> None:
    options = {
        "bucket-key": "a, b",
        "sequence.field": "b",
        "fields.a.aggregate-function": "sum",
        "fields.a,b.sequence-group": "c,a",
        "fields.default-aggregate-function": "max",
        "fields.c.nested-key": "a",
        "rowkind.field": "a",
        "file-index.bloom-filter.columns": "b, a, a[key], ab[key]",
        "file-index.bloom-filter.a.fpp": "0.1",
        "file-index.bloom-filter.a[key].fpp": "0.2",
        "file-index.range-bitmap.columns": "a",
        "file-index.in-manifest-threshold": "1 kb",
        "partial-update.remove-record-on-sequence-group": "b,a",
        "changelog-producer.row-deduplicate-ignore-fields": "a",
        "clustering.columns": "a,b",
        "comment": "a",
    }
    assert rename_in_options(options, ["a"], "z") == {
        "bucket-key": "z,b",
        "sequence.field": "b",
        "fields.z.aggregate-function": "sum",
        "fields.z,b.sequence-group": "c,z",
        "fields.default-aggregate-function": "max",
        "fields.c.nested-key": "a",
        "rowkind.field": "z",
        "file-index.bloom-filter.columns": "b,z,z[key],ab[key]",
        "file-index.bloom-filter.z.fpp": "0.1",
        "file-index.bloom-filter.z[key].fpp": "0.2",
        "file-index.range-bitmap.columns": "z",
        "file-index.in-manifest-threshold": "1 kb",
        "partial-update.remove-record-on-sequence-group": "b,z",
        "changelog-producer.row-deduplicate-ignore-fields": "z",
        "clustering.columns": "z,b",
        "comment": "a",
    }


def test_options_of_nested_rows_follow_their_field_not_a_column_of_its_name() -> None:
    options = {"fields.c.nested-key": "a,b", "fields.c.ts-field": "a", "bucket-key": "a"}
    assert rename_in_options(options, ["c", "element", "a"], "z") == {
        "fields.c.nested-key": "z,b",
        "fields.c.ts-field": "z",
        "bucket-key": "a",
    }


def test_a_column_that_is_dropped_loses_its_indexes() -> None:
    options = {
        "file-index.bloom-filter.columns": "a, b, a[key]",
        "file-index.bloom-filter.a.items": "10",
        "file-index.bloom-filter.a[key].items": "10",
        "file-index.bloom-filter.b.items": "10",
        "file-index.bitmap.columns": "a",
        "fields.a.stats-mode": "full",
    }
    assert without_indexes(options, "a") == {
        "file-index.bloom-filter.columns": "b",
        "file-index.bloom-filter.b.items": "10",
        "fields.a.stats-mode": "full",
    }


@pytest.mark.parametrize(
    "options",
    [{"bucket-key": "x, a"}, {"fields.a.stats-mode": "full"}, {"fields.x,a.sequence-group": "y"}],
)
def test_a_column_that_an_option_names_is_not_dropped(options: dict[str, str]) -> None:
    with pytest.raises(
        SchemaConflictError, match=f"column 'a'.*{next(iter(options))}|'bucket-key'"
    ):
        refuse_named_column(options, "a")
    refuse_named_column(options, "aa")


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ({}, "merge-engine", "aggregation"), ({"rowkind.field": "k"}, "rowkind.field", None),
        ({"bucket": "2"}, "bucket", None), ({"bucket": "2"}, "bucket", "-1"),
        ({"ignore-update-before": "true"}, "ignore-update-before", "false"),
        ({"pk-clustering-override": "true"}, "clustering.columns", "a"),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", None),
    ],
)  # fmt: skip
def test_options_that_files_are_written_with_do_not_change(
    options: dict[str, str], key: str, value: str | None
) -> None:
    with pytest.raises(SchemaConflictError, match=f"'{key}'"):
        check_option_change(options, key, value)


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ({"merge-engine": "aggregation"}, "merge-engine", "aggregation"),
        ({"bucket": "2"}, "bucket", "8"), ({}, "ignore-delete", "true"), ({}, "write-only", None),
        ({"deletion-vectors.modifiable": "true"}, "deletion-vectors.enabled", "true"),
    ],
)  # fmt: skip
def test_other_options_change(options: dict[str, str], key: str, value: str | None) -> None:
    check_option_change(options, key, value)

"""Rows by the time in a column, at a moment."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.predicate_stats import ColumnStats
from ingestd.paimon.spec.record_level_expire import expired_rows
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import DropColumn, RenameColumn
from ingestd.paimon.spec.table_schema import TableSchema

NOW = 1_700_000_000
"""Seconds."""
OPTIONS = {"record-level.expire-time": "100 s", "record-level.time-field": "t"}


def schema(
    kind: str, options: dict[str, str] = OPTIONS, keys: tuple[str, ...] = ("k",)
) -> TableSchema:
    columns = [("k", parse_type("INT")), ("t", parse_type(kind))]
    return new_schema(columns, keys, (), options, 0)


@pytest.mark.parametrize(
    ("kind", "per_second"),
    [
        ("INT", 1), ("BIGINT", 1), ("BIGINT", 1000), ("TIMESTAMP(0)", 1000), ("TIMESTAMP(3)", 1000),
        ("TIMESTAMP(6)", 10**6), ("TIMESTAMP(9)", 10**9),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", 1000),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", 10**6),
    ],
)  # fmt: skip
def test_a_row_expires_a_second_after_its_age(kind: str, per_second: int) -> None:
    table = schema(kind)
    expired = expired_rows(table, NOW * 1000 + 999)
    assert expired is not None
    cells = [(NOW - 101) * per_second, (NOW - 100) * per_second, None, (NOW - 100) * per_second - 1]
    rows = pa.table({"t": column_of(cells, table.field("t").type)})
    assert expired.mask(rows).tolist() == [True, False, False, True]
    assert expired.drop(rows).num_rows == 2
    for cell, result in zip(cells, (True, False, False, True), strict=True):
        assert expired.may_be_among(ColumnStats(cell, None, 0, 1)) is result
    assert not expired.may_be_among(None)


def test_rows_without_a_key_do_not_expire() -> None:
    assert expired_rows(schema("INT", keys=()), NOW * 1000) is None
    assert expired_rows(schema("INT", {}), NOW * 1000) is None


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("INT", {"record-level.expire-time": "1 d"}, "needs the option 'record-level.time-field'"),
        ("INT", {**OPTIONS, "record-level.time-field": "u"}, "column 'u' .* does not exist"),
        ("STRING", OPTIONS, "has type STRING; use INT"),
        ("DATE", {"record-level.time-field": "t"}, "has type DATE; use INT"),
        ("INT", {**OPTIONS, "record-level.expire-time": "soon"}, "cannot be read"),
    ],
)
def test_options_that_name_no_time_are_refused(
    kind: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        schema(kind, options)


def test_the_option_follows_a_renamed_column_which_cannot_be_dropped() -> None:
    changes: list[Any] = [RenameColumn("t", "at")]
    renamed = apply_changes(schema("INT"), changes, 0, has_snapshots=True)
    assert renamed.options["record-level.time-field"] == "at"
    with pytest.raises(SchemaConflictError, match=r"'record-level.time-field' cannot be dropped"):
        apply_changes(renamed, [DropColumn("at")], 0, has_snapshots=True)

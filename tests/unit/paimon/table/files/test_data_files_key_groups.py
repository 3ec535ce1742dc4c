import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.spec.predicate_stats import ColumnStats
from ingestd.paimon.table.files.data_files import KeyTest, key_group_filter
from tests.support.native_tables import native_table


def never_asked(*_: Any) -> bool:
    return False


def test_row_groups_are_asked_for_by_the_first_key_column(tmp_path: Path) -> None:
    columns = [("p", "INT"), ("a", "STRING"), ("b", "INT"), ("v", "INT")]
    table = native_table(
        tmp_path, columns, keys=["p", "a", "b"], partitions=["p"], options={"bucket": "1"}
    )
    asked: list[Any] = []
    found = key_group_filter(
        table, table.schema, KeyTest(lambda *bounds: not asked.append(bounds), never_asked)
    )
    assert found is not None
    assert found.types == {"a": pa.string()}
    assert found.test({"a": ColumnStats("x", "y", 0, 9), "b": ColumnStats(1, 2, 0, 9)})
    assert asked == [("x", "y")]
    never = key_group_filter(table, table.schema, KeyTest(never_asked, never_asked))
    assert never is not None
    assert not never.test({"a": ColumnStats("x", "y", 0, 9)})
    # What is not known may be wanted.
    for stats in ({}, {"a": ColumnStats(None, "y", 0, 9)}, {"a": ColumnStats("x", None, 0, 9)}):
        assert never.test(stats)


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_bounds_of_keys_that_may_be_nan_say_nothing(kind: str, tmp_path: Path) -> None:
    table = native_table(tmp_path, [("a", kind)], keys=["a"], options={"bucket": "1"})
    assert key_group_filter(table, table.schema, KeyTest(never_asked, never_asked)) is None


def test_keys_are_looked_at_as_the_table_names_them(tmp_path: Path) -> None:
    columns = [("a", "STRING"), ("b", "INT"), ("v", "INT")]
    table = native_table(tmp_path, columns, keys=["b", "a"], options={"bucket": "1"})
    looked_at: list[Any] = []

    def among(keys: pa.Table) -> bool:
        looked_at.append(keys.to_pydict())
        return False

    older = dataclasses.replace(
        table.schema,
        fields=tuple(
            dataclasses.replace(field, name=f"old_{field.name}") for field in table.schema.fields
        ),
    )
    found = key_group_filter(table, older, KeyTest(never_asked, among))
    assert found is not None
    assert found.probe is not None
    assert found.probe.columns == ("old_b", "old_a")
    rows = pa.table({"old_b": pa.array([1], pa.int32()), "old_a": ["x"]})
    assert not found.probe.test(rows)
    assert looked_at == [{"b": [1], "a": ["x"]}]
    # In another type they cannot be compared as they are.
    assert found.probe.test(rows.set_column(0, "old_b", pa.array([1], pa.int64())))
    assert len(looked_at) == 1

"""Which changelogs a table cannot have."""

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.spec.changelog_checks import changelog_producer
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.table_schema import TableSchema

COLUMNS = [("k", parse_type("INT")), ("v", parse_type("STRING"))]


def table(producer: str, keys: tuple[str, ...] = ("k",), **more: str) -> TableSchema:
    options = {"changelog-producer": producer, **more}
    return new_schema(COLUMNS, keys, (), {"bucket": "1", "bucket-key": "k", **options}, 0)


@pytest.mark.parametrize("producer", ["none", "Input ", "lookup", "full-compaction"])
def test_a_keyed_table_may_have_each_producer(producer: str) -> None:
    assert changelog_producer(table(producer)) == producer.strip().lower()


@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
def test_a_table_without_a_key_has_no_changelog_beside_its_rows(producer: str) -> None:
    assert changelog_producer(table("none", ())) == "none"
    with pytest.raises(ConfigError, match=f"'{producer}' needs a primary key"):
        table(producer, ())


def test_an_unknown_producer_is_named_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="'output': use one of none, input, lookup, full"):
        table("output")
    with pytest.raises(ConfigError, match="'output': use one of"):
        apply_changes(table("none"), [SetOption("changelog-producer", "output")], 1)


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_overwrites_are_not_read_where_compaction_reports_them(producer: str) -> None:
    overwrite = {"streaming-read-overwrite": "true"}
    assert changelog_producer(table("input", **overwrite)) == "input"
    with pytest.raises(ConfigError, match="cannot be used with 'streaming-read-overwrite'"):
        table(producer, **overwrite)

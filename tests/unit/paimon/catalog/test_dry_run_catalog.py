"""Whatever is done to the catalog, nothing is written below it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import (
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    load_catalog,
)
from ingestd.paimon.catalog.dry_run_catalog import DryRunCatalog
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.spec.table_schema import TableSchema

OLD, NEW = Identifier("db", "old"), Identifier("other", "new")


def schema(*columns: str) -> TableSchema:
    return new_schema([(name, DataType("INT")) for name in columns or ("k",)], ("k",), (), {}, 1)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[], list[Path]]:
    return lambda: sorted(tmp_path.rglob("*"))


@pytest.fixture
def catalog(tmp_path: Path) -> DryRunCatalog:
    base = load_catalog("filesystem", str(tmp_path))
    base.create_table(OLD, schema())
    return DryRunCatalog(base)


def test_tables_that_are_there_are_seen(catalog: DryRunCatalog) -> None:
    assert catalog.list_databases() == ["db"]
    assert catalog.list_tables("db") == ["old"]
    assert catalog.get_table(OLD).schema.field_names == ("k",)
    assert catalog.database_properties("db") == {}


def test_a_created_table_is_there_but_not_written(
    catalog: DryRunCatalog, written: Callable[[], list[Path]]
) -> None:
    before = written()
    made = catalog.create_table(NEW, schema("k", "v"))
    assert made.schemas(0).field_names == ("k", "v")
    assert catalog.get_table(NEW) is made
    assert catalog.list_databases() == ["db", "other"]
    assert catalog.list_tables("other") == ["new"]
    assert written() == before


def test_a_changed_table_is_changed_but_not_written(
    catalog: DryRunCatalog, written: Callable[[], list[Path]]
) -> None:
    before = written()
    changed = catalog.alter_table(OLD, [AddColumn("v", DataType("INT"))], 2)
    assert changed.schema.id == 1
    assert catalog.get_table(OLD).schema.field_names == ("k", "v")
    assert catalog.base.get_table(OLD).schema.field_names == ("k",)
    assert written() == before


def test_no_changes_make_no_schema(catalog: DryRunCatalog) -> None:
    assert catalog.alter_table(OLD, [], 2).schema.id == 0


def test_a_table_is_not_created_twice(catalog: DryRunCatalog) -> None:
    with pytest.raises(TableExistsError):
        catalog.create_table(OLD, schema("k", "x"))
    kept = catalog.create_table(OLD, schema("k", "x"), ignore_if_exists=True)
    assert kept.schema.field_names == ("k",)


def test_dropped_and_renamed_tables_are_only_gone_here(
    catalog: DryRunCatalog, written: Callable[[], list[Path]]
) -> None:
    before = written()
    catalog.rename_table(OLD, Identifier("db", "later"))
    assert catalog.list_tables("db") == ["later"]
    with pytest.raises(TableNotFoundError, match="no table 'old'"):
        catalog.get_table(OLD)
    with pytest.raises(DatabaseNotEmptyError):
        catalog.drop_database("db")
    catalog.drop_database("db", cascade=True)
    assert catalog.list_databases() == []
    with pytest.raises(TableNotFoundError):
        catalog.list_tables("db")
    assert written() == before


def test_a_database_that_was_dropped_comes_back_empty(catalog: DryRunCatalog) -> None:
    catalog.drop_database("db", cascade=True)
    catalog.create_database("db", {"a": "b"})
    assert catalog.list_tables("db") == []
    assert catalog.database_properties("db") == {"a": "b"}
    assert not catalog.table_exists(OLD)


def test_capitals_are_refused_where_the_catalog_would(catalog: DryRunCatalog) -> None:
    folding = DryRunCatalog(catalog.base, case_sensitive=False)
    with pytest.raises(ConfigError, match="capitals"):
        folding.create_table(NEW, schema("k", "V"))
    with pytest.raises(ConfigError, match="capitals"):
        folding.alter_table(OLD, [AddColumn("V", DataType("INT"))], 1)

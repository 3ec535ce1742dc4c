"""Databases and tables as directories."""

from pathlib import Path

import pytest

from ingestd.errors import (
    CommitConflictError,
    ConfigError,
    FormatError,
    SchemaConflictError,
    StorageError,
    UnsupportedError,
)
from ingestd.paimon.catalog.base import (
    Catalog,
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    load_catalog,
)
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn, SetOption
from ingestd.paimon.spec.table_schema import TableSchema
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.metadata_tables import NOW_MS, append, live_names, message

ORDERS = Identifier("shop", "orders")


def schema(**options: str) -> TableSchema:
    columns = [("k", parse_type("INT")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["k"], [], {"bucket": "2", **options}, NOW_MS)


def column(name: str) -> AddColumn:
    return AddColumn(name, parse_type("INT"))


@pytest.fixture(params=["local", "memory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if request.param == "local":
        return load_catalog("filesystem", f"file://{tmp_path}/warehouse/")
    return FilesystemCatalog("/warehouse", MemoryFileIO())


def memory_catalog(*issues: ValidationIssue) -> tuple[FilesystemCatalog, FaultyFileIO]:
    io = FaultyFileIO(MemoryFileIO(), list(issues))
    return FilesystemCatalog("/w", io), io


def test_a_table_lies_below_its_database(tmp_path: Path) -> None:
    catalog = load_catalog("filesystem", str(tmp_path))
    table = catalog.create_table(ORDERS, schema())
    assert table.path == f"{tmp_path}/shop.db/orders"
    assert (tmp_path / "shop.db/orders/schema/schema-0").is_file()
    assert table.name == "shop.orders"


def test_a_created_table_is_found_again(catalog: Catalog) -> None:
    assert not catalog.table_exists(ORDERS)
    created = catalog.create_table(ORDERS, schema())
    assert catalog.table_exists(ORDERS)
    assert catalog.get_table(ORDERS) == created
    assert catalog.list_databases() == ["shop"]
    assert catalog.list_tables("shop") == ["orders"]


def test_databases_may_be_empty_and_other_directories_are_no_tables(tmp_path: Path) -> None:
    catalog = load_catalog("filesystem", str(tmp_path))
    catalog.create_database("empty")
    catalog.create_database("empty")
    (tmp_path / "notes").mkdir()
    (tmp_path / "empty.db/leftover/snapshot").mkdir(parents=True)
    (tmp_path / "empty.db/README").write_text("")
    assert catalog.list_databases() == ["empty"]
    assert catalog.list_tables("empty") == []


def test_a_warehouse_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    assert load_catalog("filesystem", f"{tmp_path}/none").list_databases() == []


def test_a_missing_table_comes_with_the_nearest_name(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, schema())
    with pytest.raises(TableNotFoundError, match=r"no table 'order' .* did you mean 'orders'"):
        catalog.get_table(Identifier("shop", "order"))
    with pytest.raises(TableNotFoundError, match=r"no database 'shops' .* did you mean 'shop'"):
        catalog.get_table(Identifier("shops", "orders"))
    with pytest.raises(TableNotFoundError):
        catalog.list_tables("nowhere")


def test_an_existing_table_is_kept(catalog: Catalog) -> None:
    created = catalog.create_table(ORDERS, schema())
    with pytest.raises(TableExistsError, match=r"shop\.orders"):
        catalog.create_table(ORDERS, schema())
    again = catalog.create_table(ORDERS, schema(bucket="7"), ignore_if_exists=True)
    assert again.schema == created.schema


def test_of_two_creators_one_wins_and_the_other_takes_its_table() -> None:
    catalog, io = memory_catalog()
    rival = FilesystemCatalog("/w", io.inner)
    io.issues.append(
        ValidationIssue(
            "try_write_atomic", action=lambda: rival.create_table(ORDERS, schema(bucket="5"))
        )
    )
    assert catalog.create_table(ORDERS, schema(), ignore_if_exists=True).options.bucket == 5


def test_an_unclear_creation_is_looked_up() -> None:
    catalog, _ = memory_catalog(ValidationIssue("try_write_atomic", when="after"))
    assert catalog.create_table(ORDERS, schema()).schema == schema()
    catalog, _ = memory_catalog(ValidationIssue("try_write_atomic", when="before"))
    with pytest.raises(StorageError):
        catalog.create_table(ORDERS, schema())


def test_leftovers_of_an_older_table_are_not_adopted() -> None:
    catalog, io = memory_catalog()
    table = catalog.create_table(ORDERS, schema())
    append(table, "user", 1, message("a"))
    io.delete_tree(f"{table.path}/schema")
    with pytest.raises(ConfigError, match="snapshots of an older table"):
        catalog.create_table(ORDERS, schema())


def test_changes_make_the_next_schema(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, schema())
    altered = catalog.alter_table(ORDERS, [column("x"), column("y")], NOW_MS + 1)
    assert altered.schema.id == 1
    assert altered.schema.time_millis == NOW_MS + 1
    assert altered.schema.field_names == ("k", "v", "x", "y")
    assert catalog.get_table(ORDERS).schema == altered.schema
    assert catalog.alter_table(ORDERS, [], NOW_MS).schema.id == 1


def test_changes_land_on_top_of_those_of_others() -> None:
    catalog, io = memory_catalog()
    catalog.create_table(ORDERS, schema())
    rival = FilesystemCatalog("/w", io.inner)
    io.issues.append(
        ValidationIssue(
            "try_write_atomic", "schema-1",
            action=lambda: rival.alter_table(ORDERS, [column("theirs")], NOW_MS),
        )
    )  # fmt: skip
    altered = catalog.alter_table(ORDERS, [column("ours")], NOW_MS)
    assert altered.schema.id == 2
    assert altered.schema.field_names == ("k", "v", "theirs", "ours")


def test_losing_every_race_for_a_schema_ends() -> None:
    catalog, io = memory_catalog()
    catalog.create_table(ORDERS, schema())
    rival = FilesystemCatalog("/w", io.inner)
    names = (f"c{n}" for n in range(1000))
    io.issues.append(
        ValidationIssue(
            "try_write_atomic", "schema-", times=1000,
            action=lambda: rival.alter_table(ORDERS, [column(next(names))], NOW_MS),
        )
    )  # fmt: skip
    with pytest.raises(CommitConflictError, match="20 times"):
        catalog.alter_table(ORDERS, [column("ours")], NOW_MS)


@pytest.mark.parametrize(
    ("key", "value"), [("merge-engine", "partial-update"), ("bucket", "-1"), ("bucket-key", "k")]
)
def test_options_that_files_depend_on_stay_and_others_change(key: str, value: str) -> None:
    catalog, _ = memory_catalog()
    table = catalog.create_table(ORDERS, schema())
    append(table, "user", 1, message("a"))
    with pytest.raises(SchemaConflictError, match=key):
        catalog.alter_table(ORDERS, [SetOption(key, value)], NOW_MS)
    altered = catalog.alter_table(ORDERS, [SetOption("target-file-size", "1 mb")], NOW_MS)
    assert altered.schema.options["target-file-size"] == "1 mb"


def test_a_dropped_table_is_gone_with_its_files(catalog: Catalog) -> None:
    table = catalog.create_table(ORDERS, schema())
    append(table, "user", 1, message("a"))
    catalog.drop_table(ORDERS)
    assert not catalog.table_exists(ORDERS)
    assert catalog.list_tables("shop") == []
    assert live_names(catalog.create_table(ORDERS, schema())) == []
    with pytest.raises(TableNotFoundError):
        catalog.drop_table(Identifier("shop", "other"))


def test_a_table_dropped_half_is_still_a_table_and_has_no_snapshots() -> None:
    catalog, io = memory_catalog()
    table = catalog.create_table(ORDERS, schema())
    append(table, "user", 1, message("a"))
    io.issues.append(ValidationIssue("delete_tree", "manifest"))
    with pytest.raises(StorageError):
        catalog.drop_table(ORDERS)
    assert catalog.table_exists(ORDERS)
    assert live_names(table) == []
    catalog.drop_table(ORDERS)
    assert not catalog.table_exists(ORDERS)


def test_a_database_keeps_no_properties_and_no_location(catalog: Catalog) -> None:
    for name in ("location", "owner"):
        with pytest.raises(ConfigError, match=name):
            catalog.create_database("shop", {name: "/elsewhere"})
    assert catalog.list_databases() == []
    catalog.create_database("shop")
    assert catalog.database_properties("shop") == {}
    with pytest.raises(TableNotFoundError, match="did you mean 'shop'"):
        catalog.database_properties("shopp")


def test_a_database_goes_only_when_it_is_empty_or_told_so(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, schema())
    with pytest.raises(DatabaseNotEmptyError, match="orders"):
        catalog.drop_database("shop")
    assert catalog.list_tables("shop") == ["orders"]
    catalog.drop_database("shop", cascade=True)
    assert catalog.list_databases() == []
    with pytest.raises(TableNotFoundError):
        catalog.drop_database("shop")


def test_a_renamed_table_is_the_same_under_another_name(catalog: Catalog) -> None:
    table = catalog.create_table(ORDERS, schema())
    append(table, "user", 1, message("a"))
    before = live_names(table)
    catalog.create_database("archive")
    target = Identifier("archive", "old_orders")
    catalog.rename_table(ORDERS, target)
    assert not catalog.table_exists(ORDERS)
    assert live_names(catalog.get_table(target)) == before
    assert catalog.list_tables("archive") == ["old_orders"]


def test_a_rename_needs_a_table_a_database_and_a_free_name(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, schema())
    other = Identifier("shop", "other")
    catalog.create_table(other, schema())
    with pytest.raises(TableExistsError):
        catalog.rename_table(ORDERS, other)
    with pytest.raises(TableNotFoundError, match="no table 'gone'"):
        catalog.rename_table(Identifier("shop", "gone"), Identifier("shop", "new"))
    with pytest.raises(TableNotFoundError, match="no database 'none'"):
        catalog.rename_table(ORDERS, Identifier("none", "orders"))
    assert catalog.list_tables("shop") == ["orders", "other"]


def test_a_table_lies_where_its_name_says(catalog: Catalog) -> None:
    with pytest.raises(ConfigError, match="'path'"):
        catalog.create_table(ORDERS, schema(path="/elsewhere"))


def test_a_table_with_files_elsewhere_is_not_dropped(catalog: Catalog) -> None:
    catalog.create_table(ORDERS, schema(**{"data-file.external-paths": "file:/elsewhere"}))
    with pytest.raises(UnsupportedError, match="external-paths"):
        catalog.drop_table(ORDERS)
    assert catalog.table_exists(ORDERS)


def test_capitals_are_refused_where_engines_fold_names(tmp_path: Path) -> None:
    folding = load_catalog("filesystem", str(tmp_path), {"case-sensitive": "false"})
    with pytest.raises(ConfigError, match="'Shop' has capitals"):
        folding.create_database("Shop")
    with pytest.raises(ConfigError, match="'Orders' has capitals"):
        folding.create_table(Identifier("shop", "Orders"), schema())
    folding.create_table(ORDERS, schema())
    for change in (column("New"), RenameColumn("v", "V")):
        with pytest.raises(ConfigError, match="capitals"):
            folding.alter_table(ORDERS, [change], NOW_MS)
    with pytest.raises(ConfigError, match="'Upper' has capitals"):
        folding.rename_table(ORDERS, Identifier("shop", "Upper"))
    assert load_catalog("filesystem", str(tmp_path)).get_table(ORDERS).schema.id == 0


def test_a_table_without_files_may_change_what_files_are_written_with(catalog: Catalog) -> None:
    table = catalog.create_table(ORDERS, schema())
    change = SetOption("merge-engine", "first-row")
    assert catalog.alter_table(ORDERS, [change], NOW_MS).options.merge_engine == "first-row"
    append(table, "u", 1, message("f"))
    with pytest.raises(SchemaConflictError, match="merge-engine"):
        catalog.alter_table(ORDERS, [SetOption("merge-engine", "deduplicate")], NOW_MS)


def test_a_table_that_lost_its_only_schema_is_damaged_and_not_gone() -> None:
    files = {"/w/d.db/t/snapshot/snapshot-1": b"{}"}
    with pytest.raises(FormatError, match=r"/w/d\.db/t/schema/schema-0 is missing"):
        FilesystemCatalog("/w", MemoryFileIO(files)).get_table(Identifier("d", "t"))

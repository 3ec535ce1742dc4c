from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.catalog.base import Catalog, Identifier, TableExistsError, TableNotFoundError
from ingestd.paimon.catalog.branch_catalog import BranchCatalog
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.branches import create_branch
from tests.support.native_tables import NOW_MS, native_table

MAIN, FIX, NONE = (Identifier.parse(f"db.t{suffix}") for suffix in ("", "$branch_fix", "$branch_x"))
ADDED = [AddColumn("w", parse_type("INT"))]


@pytest.fixture
def catalog() -> BranchCatalog:
    io = MemoryFileIO()
    create_branch(native_table("/w", [("id", "INT")], keys=["id"], io=io), "fix")
    return BranchCatalog(FilesystemCatalog("/w", io))


def test_a_branch_is_the_table_with_its_own_name_and_snapshots(catalog: BranchCatalog) -> None:
    branch = catalog.get_table(FIX)
    assert (branch.branch, branch.name, branch.path) == (
        "fix",
        "db.t$branch_fix",
        catalog.get_table(MAIN).path,
    )
    assert catalog.list_tables("db") == ["t"]


def test_a_change_of_a_branch_leaves_the_table_as_it_is(catalog: BranchCatalog) -> None:
    before = catalog.get_table(MAIN).schema
    changed = catalog.alter_table(FIX, ADDED, NOW_MS)
    assert catalog.get_table(FIX).schema == changed.schema
    assert (changed.branch, changed.schema.field_names) == ("fix", ("id", "w"))
    assert catalog.get_table(MAIN).schema == before
    assert catalog.alter_table(FIX, [], NOW_MS).schema == changed.schema


def test_a_branch_exists_with_its_schema(catalog: BranchCatalog) -> None:
    other = Identifier.parse("db.none$branch_fix")
    found = [catalog.table_exists(one) for one in (MAIN, FIX, NONE, other)]
    assert found == [True, True, False, False]


def test_a_branch_is_not_created_but_the_command_is_named(catalog: BranchCatalog) -> None:
    schema = catalog.get_table(MAIN).schema
    assert catalog.create_table(FIX, schema, ignore_if_exists=True).branch == "fix"
    with pytest.raises(TableExistsError):
        catalog.create_table(FIX, schema)
    for call in (catalog.get_table, lambda one: catalog.create_table(one, schema)):
        with pytest.raises(TableNotFoundError, match=r"ingestd branch create WAREHOUSE db\.t x"):
            call(NONE)


def test_branches_are_neither_dropped_nor_renamed(catalog: BranchCatalog) -> None:
    with pytest.raises(ConfigError, match="names a branch"):
        catalog.drop_table(FIX)
    for names in ((FIX, Identifier("db", "u")), (MAIN, NONE)):
        with pytest.raises(ConfigError, match="names a branch"):
            catalog.rename_table(*names)


def test_a_catalog_without_branches_creates_no_table_of_such_a_name(tmp_path: Path) -> None:
    files = FilesystemCatalog(str(tmp_path), MemoryFileIO())
    schema = native_table("/w", [("id", "INT")], io=MemoryFileIO()).schema
    with pytest.raises(ConfigError, match="names a branch"):
        files.create_table(FIX, schema)


@dataclass
class _Locks:
    held_branches: list[str] = field(default_factory=list)

    @contextmanager
    def held(self, branch: str) -> Iterator[None]:
        self.held_branches.append(branch)
        yield


def _with(catalog: BranchCatalog, **parts: object) -> Catalog:
    class Opening(FilesystemCatalog):
        def get_table(self, identifier: Identifier) -> FileStoreTable:
            return replace(super().get_table(identifier), **parts)  # type: ignore[arg-type]

    files = catalog.base
    assert isinstance(files, FilesystemCatalog)
    return BranchCatalog(Opening(files.warehouse, files.io))


def test_the_lock_of_the_branch_is_held(catalog: BranchCatalog) -> None:
    locks = _Locks()
    _with(catalog, lock=locks).alter_table(FIX, ADDED, NOW_MS)
    assert locks.held_branches == ["fix"]


def test_branches_of_a_server_are_refused_by_name(catalog: BranchCatalog) -> None:
    with pytest.raises(UnsupportedError, match="REST catalog"):
        _with(catalog, snapshot_commit=object()).get_table(FIX)

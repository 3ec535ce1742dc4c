"""The REST catalog client against Paimon's own server: a process that knows nothing of ours."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import (
    CommitConflictError,
    ConfigError,
    SchemaConflictError,
    UnsupportedError,
)
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.batch_span import BatchSpan, TableStep
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import (
    Catalog,
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    load_catalog,
)
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, put, rows_table, write
from tests.support.oracle import Oracle
from tests.support.rest_server import RestServer
from tests.support.stored_rows import stored_rows
from tests.support.truth_rig import Topic, Truth

pytestmark = pytest.mark.compat

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}
CHANGES = [
    AddColumn("w", parse_type("DECIMAL(5, 1)"), "about", Move(MoveType.FIRST)),
    AddColumn("r", parse_type(ROW)),
    AddColumn(("r", "y"), parse_type("BIGINT")),
    UpdateColumnType("w", parse_type("DECIMAL(8, 1)")),
    RenameColumn("v", "text"),
    UpdateColumnComment("text", "new"),
    UpdateColumnDefaultValue("text", "none"),
    UpdateColumnPosition("text", Move(MoveType.AFTER, "id")),
    UpdateColumnNullability("text", nullable=True),
    DropColumn("w"),
    SetOption("snapshot.num-retained.min", "5"),
    RemoveOption("snapshot.num-retained.min"),
    UpdateComment("a table"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with RestServer(tmp_path_factory.mktemp("rest")) as running:
        yield running


@pytest.fixture
def catalog(server: RestServer) -> Catalog:
    return load_catalog("rest", server.warehouse, server.options)


@pytest.fixture
def database(catalog: Catalog, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.split("[")[0].removeprefix("test_")
    catalog.create_database(name, {"owner": "tests"})
    yield name
    catalog.drop_database(name, cascade=True)


def schema() -> TableSchema:
    columns = [("id", parse_type("INT")), ("dt", parse_type("DATE")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["id", "dt"], ["dt"], {"bucket": "2"}, NOW_MS)


def test_databases(catalog: Catalog, database: str) -> None:
    assert database in catalog.list_databases()
    catalog.create_database(database, {"owner": "others"})
    assert catalog.database_properties(database) == {"owner": "tests"}
    catalog.create_table(Identifier(database, "t"), schema())
    with pytest.raises(DatabaseNotEmptyError):
        catalog.drop_database(database)
    with pytest.raises(TableNotFoundError, match="did you mean"):
        catalog.list_tables(database + "s")


def test_tables(catalog: Catalog, database: str) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        assert catalog.create_table(Identifier(database, name), schema()).schema.fields
    assert catalog.list_tables(database) == names
    first, new = Identifier(database, "t0"), Identifier(database, "t9")
    with pytest.raises(TableExistsError):
        catalog.create_table(first, schema())
    assert catalog.create_table(first, schema(), ignore_if_exists=True).name == str(first)
    with pytest.raises(TableExistsError):
        catalog.rename_table(first, Identifier(database, "t1"))
    catalog.rename_table(first, new)
    assert (catalog.table_exists(first), catalog.table_exists(new)) == (False, True)
    catalog.drop_table(new)
    for missing in (catalog.get_table, catalog.drop_table):
        with pytest.raises(TableNotFoundError):
            missing(new)


def test_every_schema_change(catalog: Catalog, database: str) -> None:
    name = Identifier(database, "t")
    table = catalog.create_table(name, schema())
    for number, change in enumerate(CHANGES, 1):
        table = catalog.alter_table(name, [change], NOW_MS)
        published = latest_schema(table.io, table.paths)
        assert published is not None
        assert (published.id, published.fields) == (table.schema.id, table.schema.fields)
        assert (published.options, published.comment) == (
            table.schema.options,
            table.schema.comment,
        )
        assert table.schema.id == number
    with pytest.raises(SchemaConflictError):
        catalog.alter_table(name, [DropColumn("none")], NOW_MS)
    assert [field.name for field in table.schema.fields] == ["id", "text", "dt", "r"]


def test_commits_go_through_the_server(
    catalog: Catalog, database: str, server: RestServer, oracle: Oracle, tmp_path: Path
) -> None:
    table = catalog.create_table(Identifier(database, "t"), schema())
    planned = load_state(table)
    put(table, [{"id": 1, "dt": 1, "v": "a"}, {"id": 2, "dt": 2, "v": "b"}])
    assert put(table, [{"id": 1, "dt": 1, "v": "newer"}]).attempts == 1
    assert load_state(table).snapshot != planned.snapshot
    warehouse = Path(table.path).parent.parent
    assert oracle.fsck(warehouse, database, "t", "--all") == []
    assert sorted(row["v"] for row in oracle.read(warehouse, database, "t")) == ["b", "newer"]
    oracle.append(warehouse, database, "t", [{"id": 3, "dt": "1970-01-02", "v": "java"}], tmp_path)
    put(table, [{"id": 4, "dt": 1, "v": "after"}])
    assert sorted(row["v"] for row in stored_rows(table)) == ["after", "b", "java", "newer"]
    assert verify(table) == []
    truncate_table(table, now_ms=NOW_MS)
    assert oracle.read(warehouse, database, "t") == []


def test_a_table_that_was_replaced_takes_no_old_commits(catalog: Catalog, database: str) -> None:
    name = Identifier(database, "t")
    old = catalog.create_table(name, schema())
    catalog.drop_table(name)
    new = catalog.create_table(name, schema())
    with pytest.raises((TableNotFoundError, CommitConflictError)):
        put(old, [{"id": 1, "dt": 1, "v": "old"}])
    assert stored_rows(new) == []


def test_a_wrong_token_is_refused(server: RestServer) -> None:
    with pytest.raises(ConfigError, match="401"):
        load_catalog("rest", server.warehouse, {"uri": server.uri, "token": "wrong-token"})


def test_a_pipeline_finds_its_offsets_again(
    catalog: Catalog, database: str, server: RestServer, tmp_path: Path
) -> None:
    settings = PipelineSettings(
        name="job",
        warehouse=str(tmp_path),
        metastore="rest",
        catalog_options=server.options,
        database=database,
        sources={},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
        max_offsets_per_trigger={},
    )

    def opened() -> TableRegistry:
        registry = TableRegistry(settings, catalog, LocalFileIO(sync=False), lambda: NOW_MS)
        registry.open()
        return registry

    name = f"{database}.t"
    registry = opened()
    registry.ensure(name, schema())
    registry.alter(name, [AddColumn("new", parse_type("INT"))])
    one = registry.tables[name]
    assert [field.name for field in one.table.schema.fields][-1] == "new"
    rows = rows_table(one.table.schema, [{"id": 1, "dt": 1, "new": 5}])
    span = BatchSpan({"id": {0: 0}}, {"id": {0: Position(10, 0)}})
    messages = write(one.table, one.state, rows)
    registry.mark([name])
    done = registry.commit(name, messages, span, TableStep(frozenset({"id"})))
    assert done.status == "committed"
    again = opened()
    assert again.tables[name].covered["id"][0].offset == 10
    assert [row["new"] for row in stored_rows(again.tables[name].table)] == [5]


def test_a_pipeline_whose_target_is_a_branch_is_refused_and_the_table_stays_as_it_is(
    server: RestServer, tmp_path: Path
) -> None:
    options = {**server.options, "warehouse": server.warehouse}
    pipeline = Truth(tmp_path, metastore="rest", database="branches", catalog_options=options)
    pipeline.kafka.topics["shop.orders"] = Topic("one")
    pipeline.kafka.produce("shop.orders", *range(6))
    pipeline.live()
    create_branch(pipeline.table("orders"), "fix")
    pipeline.kafka.produce("shop.orders", *range(6, 9))
    on_branch = replace(pipeline, mapping=dict.fromkeys(pipeline.mapping, "orders$branch_fix"))
    with pytest.raises(UnsupportedError, match="write the table itself, or use another catalog"):
        on_branch.live()
    assert pipeline.ids("orders") == list(range(6))
    pipeline.live()
    assert pipeline.ids("orders") == list(range(9))

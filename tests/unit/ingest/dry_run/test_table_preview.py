from dataclasses import replace

from ingestd.ingest.dry_run.dry_run import DryRun, sample_lookup
from ingestd.ingest.dry_run.table_preview import TablePreview, table_previews
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.stages.truncates import Truncates
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from ingestd.paimon.spec.table_schema import TableSchema

NAME = "ods.t"
INT, BIGINT, TEXT = DataType("INT"), DataType("BIGINT"), DataType("STRING")


def schema(**options: str) -> TableSchema:
    columns = [("id", INT), ("day", TEXT), ("a", INT), ("b", TEXT)]
    return new_schema(columns, ("id", "day"), ("day",), options, 1)


def outlook(before: TableSchema | None, after: TableSchema, problem: str = "") -> TablePreview:
    found = DryRun(
        Truncates(sample_lookup({})),
        before={} if before is None else {NAME: before},
        after={NAME: after},
        source_tables={NAME: frozenset({QualifiedSourceTable("s", "db", None, "t")})},
        topics={NAME: frozenset({("s", "topic")})},
        table_problems={NAME: problem} if problem else {},
    )
    found.rows[NAME, RowKind.DELETE] = 3
    return table_previews(found)[0]


def test_of_a_new_table_everything_is_new() -> None:
    one = outlook(None, schema(bucket="4"))
    assert one.verdict == "create"
    assert {column.change for column in one.columns} == {"new"}
    assert (one.sources, one.topics) == (("s:db.t",), ("topic",))
    assert (one.primary_keys, one.partition_keys) == (("id", "day"), ("day",))
    assert one.buckets == "4 fixed buckets by id"
    assert one.rows == {"delete": 3}


def test_a_table_that_needs_nothing_stays() -> None:
    one = outlook(schema(), schema())
    assert one.verdict == "keep"
    assert {column.change for column in one.columns} == {"unchanged"}
    assert one.buckets == "dynamic buckets with a hash index"


def test_changes_of_columns_are_reported_by_what_they_were() -> None:
    after = apply_changes(
        schema(),
        [
            AddColumn("c", TEXT),
            UpdateColumnType("a", BIGINT),
            RenameColumn("a", "z"),
            DropColumn("b"),
        ],
        2,
    )
    one = outlook(schema(), after)
    assert one.verdict == "alter"
    assert {column.name: column.change for column in one.columns} == {
        "id": "unchanged",
        "day": "unchanged",
        "z": "renamed from a, widened from INT",
        "c": "new",
    }
    assert one.dropped == ("b",)


def test_an_impossible_table_is_shown_as_it_is_today() -> None:
    one = outlook(schema(), schema(), problem="why")
    assert (one.verdict, one.problem) == ("impossible", "why")
    assert [column.name for column in one.columns] == ["id", "day", "a", "b"]


def test_an_impossible_new_table_has_no_columns() -> None:
    one = outlook(None, schema(), problem="why")
    assert (one.verdict, one.columns) == ("impossible", ())


def test_a_bucket_that_is_no_number_is_reported() -> None:
    broken = replace(schema(), options={"bucket": "many"})
    assert "many" in outlook(broken, broken, problem="why").buckets

"""What whole command lines become; all results are loaded as any configuration is."""

import re
from typing import Any

import pytest

from ingestd.config.flink_command import parse_flink_command, shell_words
from ingestd.config.import_notes import Note, assemble, validation_error_of
from ingestd.config.paimon_cdc import import_command

KAFKA = (
    "--kafka_conf properties.bootstrap.servers=b:9092 --kafka_conf topic=t "
    "--kafka_conf properties.group.id=g --kafka_conf value.format=canal-json"
)
PLACE = "--warehouse /lake --database ods"


def carried(action: str, arguments: str = "", flink: str = "") -> tuple[dict[str, Any], list[Note]]:
    line = shell_words(f"flink run {flink} x.jar {action} {PLACE} {KAFKA} {arguments}")
    tree, notes = assemble(import_command(parse_flink_command(line.words)), validation_error_of)
    assert validation_error_of(tree) is None
    return tree, notes


def table(arguments: str = "", flink: str = "") -> tuple[dict[str, Any], list[Note]]:
    return carried("kafka_sync_table", f"--table orders {arguments}", flink)


def database(arguments: str = "", flink: str = "") -> tuple[dict[str, Any], list[Note]]:
    return carried("kafka_sync_database", arguments, flink)


def essential(notes: list[Note]) -> list[str]:
    return [note.argument for note in notes if note.essential]


def test_a_table_gets_the_rows_of_all_topics() -> None:
    tree, notes = table("--primary_keys id,day --partition_keys day --table_conf bucket=4")
    assert tree["warehouse"] == {"path": "/lake", "database": "ods"}
    assert tree["pipeline"] == {"name": "orders"}
    (rule,) = tree["routing"]["rules"]
    assert rule == {"match": {"table": ".*"}, "to": "orders", "merge-shards": True}
    assert tree["tables"] == {
        "orders": {
            "primary-keys": ["id", "day"],
            "partition-keys": ["day"],
            "options": {"bucket": "4"},
        }
    }
    assert essential(notes) == []


def test_what_is_said_of_a_database_holds_for_every_table() -> None:
    tree, notes = database(
        "--primary_keys id --table_conf bucket=4 --table_conf changelog-producer=input "
        "--multiple_table_partition_keys items=dt,hh --table_prefix ods_ --table_suffix _x "
        "--table_mapping a=b --table_mapping c=d --table_prefix_db crm=crm_"
    )
    assert tree["defaults"] == {
        "primary-keys": ["id"],
        "options": {"bucket": "4", "changelog-producer": "input"},
    }
    assert tree["tables"] == {"items": {"partition-keys": ["dt", "hh"]}}
    assert tree["routing"] == {
        "table-prefix": "ods_",
        "table-suffix": "_x",
        "table-mapping": {"a": "b", "c": "d"},
        "table-prefix-db": {"crm": "crm_"},
        "merge-shards": True,
    }
    assert essential(notes) == []


@pytest.mark.parametrize(
    ("given", "name", "matches"),
    [
        ("a|b_.*", "b_x", True),
        ("a|b_.*", "b_db.x", False),
        ("a|b", "b", True),
        (".*", "x", True),
    ],
)
def test_patterns_are_for_names_of_tables_alone(given: str, name: str, matches: bool) -> None:
    tree, _ = database(f"--including_tables '{given}' --excluding_dbs 'test|sys'")
    pattern = tree["routing"]["including-tables"]
    assert (re.fullmatch(pattern, name) is not None) is matches
    assert tree["routing"]["excluding-dbs"] == "test|sys"


def test_partitions_of_every_table_come_with_a_warning() -> None:
    tree, notes = database("--partition_keys dt --computed_column 'dt=date_format(at, yyyy)'")
    assert tree["defaults"]["partition-keys"] == ["dt"]
    assert [note.argument for note in notes if "partitions" in note.text] == ["--partition_keys dt"]


def test_that_ingestd_leaves_out_working_copies_is_reported() -> None:
    assert any(note.argument == "--excluding_tables" for note in database()[1])
    assert not any(
        note.argument == "--excluding_tables" for note in database("--excluding_tables x")[1]
    )


def test_computed_and_metadata_columns_are_taken() -> None:
    tree, notes = table(
        "--computed_column 'day=date_format(created_at, yyyy-MM-dd)' --partition_keys day "
        "--metadata_column topic,offset --metadata_column_prefix __kafka_"
    )
    assert tree["tables"]["orders"] == {
        "computed-columns": {"day": "date_format(created_at, yyyy-MM-dd)"},
        "metadata-columns": ["topic", "offset"],
        "metadata-column-prefix": "__kafka_",
        "partition-keys": ["day"],
    }
    assert essential(notes) == []


def test_quotes_that_mean_themselves_are_put_into_quotes() -> None:
    line = '''--computed_column "day=date_format(at, yyyy-MM-dd'T'HH)"'''
    tree, notes = table(line)
    call = tree["tables"]["orders"]["computed-columns"]["day"]
    assert call == "date_format(at, 'yyyy-MM-dd''T''HH')"
    assert essential(notes) == []


def test_what_cannot_be_honoured_is_named_and_left_out() -> None:
    tree, notes = table(
        "--metadata_column made_up --computed_column 'x=made_up(y)' "
        "--table_conf merge-engine=made-up --type_mapping to-nullable,to-string"
    )
    assert essential(notes) == [
        "--computed_column x=made_up(y)",
        "--metadata_column made_up",
        "--table_conf merge-engine=made-up",
    ]
    assert tree["sources"]["kafka"]["type-mapping"] == ["to-nullable", "to-string"]


def test_what_only_flink_looks_at_is_named_but_nothing_is_lost() -> None:
    _, notes = database(
        "--table_conf sink.parallelism=4 --mode combined --eager_init true", "-d -p 4 -Da.b=c"
    )
    assert essential(notes) == []
    assert {
        "--table_conf sink.parallelism=4",
        "--mode combined",
        "--eager_init true",
        "-d",
        "-p 4",
        "a.b c",
    } <= {note.argument for note in notes}


def test_the_pace_and_the_name_of_the_job_are_taken() -> None:
    flink = "-Dexecution.checkpointing.interval=30000 -D 'pipeline.name=Shop ODS/1'"
    assert table(flink=flink)[0]["pipeline"] == {"name": "shop-ods-1", "trigger": "30000ms"}
    flink = "-D execution.checkpointing.interval=3min"
    assert table(flink=flink)[0]["pipeline"]["trigger"] == "3min"


def test_a_savepoint_is_essential() -> None:
    assert essential(table(flink="-s s3://savepoints/1")[1]) == ["-s s3://savepoints/1"]


def test_an_argument_that_nobody_knows_is_essential() -> None:
    assert essential(table("--made_up x")[1]) == ["--made_up x"]


def test_keys_that_are_not_to_come_from_the_source_make_append_tables() -> None:
    tree, _ = table("--sync_primary_keys_from_source_schema false")
    assert tree["tables"]["orders"]["primary-keys"] == "none"


@pytest.mark.parametrize("missing", ["--warehouse", "--database", "--table"])
def test_a_missing_argument_is_essential_and_the_result_loads(missing: str) -> None:
    words = shell_words(f"kafka_sync_table {PLACE} {KAFKA} --table orders").words
    at = words.index(missing)
    command = parse_flink_command(words[:at] + words[at + 2 :])
    tree, notes = assemble(import_command(command), validation_error_of)
    assert validation_error_of(tree) is None
    assert essential(notes) == [missing]


def test_nothing_but_the_action_still_gives_something_to_fill_in() -> None:
    tree, notes = assemble(
        import_command(parse_flink_command(["kafka_sync_database"])), validation_error_of
    )
    assert validation_error_of(tree) is None
    assert len(essential(notes)) == 5

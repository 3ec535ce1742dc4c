import pytest

from ingestd.config.flink_command import flink_options, parse_flink_command
from ingestd.errors import ConfigError


def test_both_forms_of_arguments_are_taken_in_their_order() -> None:
    words = ["flink", "run", "x.jar", "kafka_sync_table", "--a", "1", "--b=2=3", "--a=4"]
    found = parse_flink_command(words)
    assert found.action == "kafka_sync_table"
    assert found.arguments == {"a": ["1", "4"], "b": ["2=3"]}
    assert found.flink == ("flink", "run", "x.jar")


def test_names_have_either_hyphens_or_underlines() -> None:
    found = parse_flink_command(["Kafka-Sync-Database", "--including-tables", "a", "-mode", "b"])
    assert found.action == "kafka_sync_database"
    assert found.arguments == {"including_tables": ["a"], "mode": ["b"]}


def test_an_argument_without_a_value_is_a_switch() -> None:
    found = parse_flink_command(["kafka_sync_table", "--eager_init", "--n", "-1", "--last"])
    assert found.arguments == {"eager_init": ["true"], "n": ["-1"], "last": ["true"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["flink", "run", "x.jar", "mysql_sync_table"], "'mysql_sync_table' does not read Kafka"),
        (["flink", "run"], "has no action"),
        (["job.sh"], "in a file is read by `- < FILE`"),
        (["kafka_sync_table", "a=b"], "'a=b' follows no --argument"),
        (["kafka_sync_table", "--a", "b", "c"], "'c' follows no --argument"),
    ],
)
def test_what_is_no_such_command_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_flink_command(words)


def test_options_of_flink_are_settings_and_switches() -> None:
    words = [
        "bin/flink",
        "run",
        "-d",
        "-p",
        "4",
        "-Da.b=1",
        "-D",
        "c=d=e",
        "-s",
        "s3://x",
        "--detached",
        "x.jar",
    ]
    assert flink_options(words) == {
        "-d": "",
        "-p": "4",
        "a.b": "1",
        "c": "d=e",
        "-s": "s3://x",
        "--detached": "",
    }


def test_without_run_there_are_still_options() -> None:
    assert flink_options(["-Dx=y", "a.jar"]) == {"x": "y"}

"""`ingestd get`: keys as they are typed."""

from pathlib import Path

import pytest

from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


def get(capsys: Capture, *arguments: object) -> list[str]:
    done = run_command(capsys, "get", *arguments)
    assert done.code == 0, done.err
    return done.out.splitlines()


def test_rows_of_a_single_key_column_are_printed(tmp_path: Path, capsys: Capture) -> None:
    table = native_table(tmp_path, [("id", "DATE"), ("v", "STRING")], keys=["id"])
    put(table, [{"id": 19_000, "v": "a"}, {"id": 19_001, "v": "b"}])
    put(table, [{"id": 19_001, "v": "c"}])
    assert get(capsys, tmp_path, "db.t", "2022-01-08", "id=2022-01-09", "2022-01-10") == [
        '{"id":"2022-01-08","v":"a"}', '{"id":"2022-01-09","v":"c"}'
    ]  # fmt: skip
    then = get(capsys, tmp_path, "db.t", "2022-01-09", "--snapshot", 1, "--columns", "v")
    assert then == ['{"v":"b"}']


def test_a_key_of_several_columns_names_them_and_may_contain_commas(
    tmp_path: Path, capsys: Capture
) -> None:
    table = native_table(tmp_path, [("a", "INT"), ("b", "STRING")], keys=["a", "b"])
    put(table, [{"a": 1, "b": "x,y=2"}, {"a": 1, "b": "x"}])
    assert get(capsys, tmp_path, "db.t", "b=x,y=2,a=1") == ['{"a":1,"b":"x,y=2"}']


@pytest.mark.parametrize("key", ["1", "a=1", "a=1,a=2,b=x", "1,b=x", "a=x,b=x", ""])
def test_another_form_is_an_error_that_shows_the_right_one(
    key: str, tmp_path: Path, capsys: Capture
) -> None:
    native_table(tmp_path, [("a", "INT"), ("b", "STRING")], keys=["a", "b"])
    done = run_command(capsys, "get", tmp_path, "db.t", key)
    assert done.code == 2
    assert "write a=VALUE,b=VALUE" in done.err or "column a: 'x' is no value" in done.err


def test_a_table_without_a_primary_key_is_refused(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("a", "INT")])
    done = run_command(capsys, "get", tmp_path, "db.t", "1")
    assert done.code == 2
    assert "ingestd read --where" in done.err

"""`ingestd parse` on files; what needs a broker is among the integration tests."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.support.change_events import event, key
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "m.jsonl"
    lines = [
        key(id=1) + b"|" + event("c", {"id": 1, "offset": 9, "v": None, "o": [1, "x"]}),
        key(id=1) + b"|{bad",
        key(id=1) + b"|",
        b"|" + event("t"),
        key(id=2) + b"|" + event("c", {"id": 2, "v": "x"}),
    ]
    path.write_bytes(b"\n".join(lines))
    return path


def test_rows_types_and_reasons_are_shown(messages: Path, capsys: Capture) -> None:
    done = run_command(
        capsys, "parse", "--format", "debezium-json", "--key-separator", "|", messages
    )
    assert done.code == 1
    assert "shopdb.public.orders, key id" in done.out
    assert "+I" in done.out
    assert "NULL" in done.out
    assert '[1, "x"]' in done.out or '[1,"x"]' in done.out
    assert "invalid-json" in done.out
    assert "offset 4: table shopdb.public.orders is emptied" in done.out
    assert done.out.rstrip().endswith("5 records: 2 rows, 1 truncate, 1 without rows, 1 rejected")


def test_json_has_all_of_it(messages: Path, capsys: Capture) -> None:
    done = run_command(
        capsys, "parse", "--format=debezium-json", "--key-separator=|", messages, "--json"
    )
    document = json.loads(done.out)
    (table,) = document["tables"]
    assert table["source"] == {"database": "shopdb", "schema": "public", "table": "orders"}
    assert table["types"]["id"] == "BIGINT"
    assert table["rows"][0]["rowkind"] == "+I"
    assert table["rows"][0]["values"]["offset"] == 9
    assert document["rejected"][0]["offset"] == 2
    assert document["rejected"][0]["reason"] == "invalid-json"
    assert document["truncates"][0]["offset"] == 4
    assert (document["records"], document["control"]) == (5, 1)


def test_standard_input_is_read(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO(b'{"id":1}\n{"id":2}\n{"id":3}\n'))
    monkeypatch.setattr(sys, "stdin", given)
    done = run_command(
        capsys, "parse", "--format", "json", "--topic", "items", "--records", 2, "-", "--json"
    )
    document = json.loads(done.out)
    assert done.code == 0
    assert document["tables"][0]["source"]["table"] == "items"
    assert [row["values"]["id"] for row in document["tables"][0]["rows"]] == [1, 2]


def test_a_type_mapping_is_honoured(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m"
    path.write_text('{"id":1}')
    done = run_command(
        capsys, "parse", "--format", "json", "--type-mapping", "to_string", path, "--json"
    )
    assert json.loads(done.out)["tables"][0]["types"] == {"id": "STRING"}


def test_a_whole_file_may_be_one_binary_message(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"\x00\n\xff")
    done = run_command(capsys, "parse", "--format", "raw", "--whole", path, "--json")
    assert json.loads(done.out)["tables"][0]["rows"][0]["values"]["value"] == "000aff"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "--format"),
        (["--format", "jsno", "x"], "no data format 'jsno'"),
        (["--format", "avro", "x"], "needs --schema-registry"),
        (["--format", "json"], "specify where to read messages"),
        (["--format", "json", "--topic", "t"], "specify where to read messages"),
        (["--format", "json", "--kafka", "sasl.password", "x"], "write NAME=VALUE"),
        (["--format", "json", "--type-mapping", "tinyint1-not-bool", "x"], "has no effect on json"),
        (["--format", "avro", "--schema-registry", "http://127.0.0.1:1", "x"], "add --whole"),
    ],
)
def test_what_cannot_be_understood_is_refused(
    arguments: list[str],
    message: str,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").write_text("{}")
    done = run_command(capsys, "parse", *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_file_that_is_not_there_is_four(capsys: Capture, tmp_path: Path) -> None:
    assert run_command(capsys, "parse", "--format", "json", tmp_path / "none").code == 4


def test_names_in_a_message_command_no_terminal(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "m.jsonl"
    evil = "\x1b]0;x\x07\x9b2J\n"
    change = json.loads(event("c", {"id": 1, evil: 2}))
    change["source"]["table"] = evil
    truncate = json.loads(event("t"))
    truncate["source"]["table"] = evil
    lines = (json.dumps({evil: 1}), json.dumps(change)), ("", json.dumps(truncate))
    file.write_text("\n".join("|".join(line) for line in lines))
    done = run_command(capsys, "parse", "--format=debezium-json", "--key-separator=|", file)
    assert r"\x1b]0;x\x07\x9b2J\n" in done.out
    assert {one for one in done.out + done.err if not one.isprintable()} == {"\n"}
    assert "is emptied" in done.out

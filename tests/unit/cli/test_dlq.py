"""`ingestd dlq` on a table of dead letters; Kafka is a list."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk, RejectedRecord
from ingestd.cli import dead_letter_replay
from ingestd.errors import SourceError
from ingestd.ingest.dead_letters.dead_letter import (
    COLUMNS,
    DeadLetter,
    dead_letter_rows,
    dead_letter_schema,
)
from ingestd.kafka.producer import Outgoing
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.schema_change import DropColumn
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]
DAY = 86_400_000
DEAD_LETTERS = Identifier("db", "ingestd_dead_letters")
Sent = list[tuple[str, str, Outgoing]]


def dead_letter(offset: int, **changes: Any) -> DeadLetter:
    fields: dict[str, Any] = {
        "topic": "t", "partition": 0, "offset": offset, "timestamp": offset * DAY,
        "stage": "decode", "reason": "not_json", "message": "why",
        "key": b"k%d" % offset, "value": b"v%d" % offset, **changes,
    }  # fmt: skip
    return DeadLetter(RejectedRecord(**fields))


LETTERS = [
    dead_letter(1),
    dead_letter(2, stage="cast", reason="overflow"),
    replace(dead_letter(3, value=b"\xff\x00", key=None), table="db.t3"),
    dead_letter(4, topic="u", partition=1),
    dead_letter(5, stage="fetch", reason="offset-gap", key=None, value=None, timestamp=-1),
]


def with_headers(dead_letters: list[DeadLetter]) -> RecordChunk:
    """The chunk that letters came in: the record at offset 2 has headers."""
    offsets = np.array([dead_letter.rejected.offset for dead_letter in dead_letters], np.int64)
    headers: Any = [[("id", b"\x00\xff"), ("x", b"y")] if at == 2 else [] for at in offsets]
    nothing: list[bytes | None] = [None] * len(dead_letters)
    return RecordChunk("t", 0, offsets, offsets, nothing, nothing, headers)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A warehouse with five letters in two commits."""
    catalog = load_catalog("filesystem", str(tmp_path), {})
    catalog.create_database("db")
    catalog.create_table(DEAD_LETTERS, dead_letter_schema(0))
    table = catalog.get_table(DEAD_LETTERS)
    for number, part in enumerate((LETTERS[:3], LETTERS[3:])):
        add(table, number, part)
    return tmp_path


def add(table: FileStoreTable, number: int, dead_letters: list[DeadLetter]) -> None:
    """Commit letters to their table."""
    rows = dead_letter_rows("job", "src", dead_letters, with_headers(dead_letters))
    rows = rows.select([name for name, _ in COLUMNS])
    message = write_bucket(table, EMPTY_ROW, 0, rows, new_name=data_file_names(table))
    committable = ManifestCommittable(number, (message,))
    commit(table, "writer", committable, state=load_state(table), now_ms=0)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What would have been sent: brokers, topic, message."""
    found: Sent = []

    def produce(source: KafkaSource, topic: str, messages: Iterable[Outgoing]) -> int:
        some = [(source.bootstrap, topic, message) for message in messages]
        found.extend(some)
        return len(some)

    monkeypatch.setattr(dead_letter_replay, "produce", produce)
    return found


def shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, "dlq", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def offsets(capsys: Capture, lake: Path) -> list[int]:
    lines = run_command(capsys, "read", lake, "db.ingestd_dead_letters", "--columns", "offset")
    return sorted(json.loads(line)["offset"] for line in lines.out.splitlines())


def test_letters_are_counted_by_topic_stage_and_reason(lake: Path, capsys: Capture) -> None:
    groups = shown(capsys, "count", lake, "db")["groups"]
    assert [(g["topic"], g["stage"], g["reason"], g["dead_letters"]) for g in groups] == [
        ("t", "decode", "not_json", 2),
        ("t", "cast", "overflow", 1),
        ("t", "fetch", "offset-gap", 1),
        ("u", "decode", "not_json", 1),
    ]
    assert groups[0]["first"] == "1970-01-02T00:00:00.000Z"
    assert groups[0]["last"] == "1970-01-04T00:00:00.000Z"
    assert groups[2]["first"] is None
    (only,) = shown(capsys, "count", lake, "db.ingestd_dead_letters", "--topic", "u")["groups"]
    assert only["dead_letters"] == 1
    assert "overflow" in run_command(capsys, "dlq", "count", lake, "db").out
    assert (
        "no such dead letters"
        in run_command(capsys, "dlq", "count", lake, "db", "--stage", "merge").out
    )
    refused = run_command(capsys, "dlq", "count", lake, "db", "--stage", "gap")
    assert (refused.code, "choose fetch, decode, route" in refused.err) == (2, True)


def test_letters_are_listed_with_their_coordinates_the_newest_first(
    lake: Path, capsys: Capture, sent: Sent
) -> None:
    shown(capsys, "replay", lake, "db", "--bootstrap", "b:1", "--topic", "u")
    listed = shown(capsys, "list", lake, "db")
    assert (listed["total"], [dead_letter["offset"] for dead_letter in listed["dead_letters"]]) == (
        5,
        [4, 3, 2, 1, 5],
    )
    assert listed["dead_letters"][0] == {
        "source": "src", "topic": "u", "partition": 1, "offset": 4, "stage": "decode",
        "timestamp": "1970-01-05T00:00:00.000Z", "reason": "not_json", "table": None,
        "message": "why", "replayed": True,
    }  # fmt: skip
    text = run_command(capsys, "dlq", "list", lake, "db", "--limit", "2").out
    assert "The newest 2 of 5; --limit shows more" in text
    line = next(line for line in text.splitlines() if line.startswith("u "))
    assert line.split() == ["u", "1", "4", "1970-01-05T00:00:00.000Z", "decode", "not_json", "why"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--table", "db.t3"), [3]),
        (("--topic", "t", "--partition", "0", "--stage", "decode"), [3, 1]),
        (("--reason", "overflow"), [2]),
        (("--source", "other"), []),
        (("--older-than", "1h"), [4, 3, 2, 1]),
        (("--newer-than", "1h"), []),
    ],
)
def test_listed_letters_are_selected_by_filters(
    lake: Path, capsys: Capture, options: tuple[str, ...], wanted: list[int]
) -> None:
    listed = shown(capsys, "list", lake, "db", *options)["dead_letters"]
    assert [one["offset"] for one in listed] == wanted


def test_one_letter_is_replayed(lake: Path, capsys: Capture, sent: Sent) -> None:
    words = ("replay", lake, "db", "--bootstrap", "b:1")
    one = ("--topic", "t", "--partition", "0", "--offset")
    assert shown(capsys, *words, *one, 2)["sent"] == 1
    assert [message.value for _, _, message in sent] == [b"v2"]
    for wrong in (("--offset", 2), ("--partition", 0, "--offset", 2), (*one, 99)):
        assert run_command(capsys, "dlq", *words, *wrong).code == 2


def test_a_letter_is_shown_with_its_bytes_as_text_or_hex(lake: Path, capsys: Capture) -> None:
    (one,) = shown(capsys, "show", lake, "db", "t", 0, 1)
    assert (one["value"], one["value_is"], one["message"]) == ("v1", "text", "why")
    assert one["headers"] is None
    (one,) = shown(capsys, "show", lake, "db", "t", 0, 2)
    assert one["headers"] == {"id": "00ff", "x": "y"}
    (one,) = shown(capsys, "show", lake, "db", "t", 0, 3)
    assert (one["value"], one["value_is"]) == ("ff00", "hex")
    assert (one["message"], one["table"]) == ("why", "db.t3")
    assert (one["key"], one["key_is"]) == (None, "null")
    (one,) = shown(capsys, "show", lake, "db", "t", 0, 1, "--format", "hex")
    assert (one["value"], one["value_is"]) == ("7631", "hex")
    (one,) = shown(capsys, "show", lake, "db", "t", 0, 3, "--format", "text")
    assert one["value"] == "\\xff\x00"
    assert "why" in run_command(capsys, "dlq", "show", lake, "db", "t", 0, 1).out


def test_a_letter_that_is_not_there_and_other_tables_are_refused(
    lake: Path, capsys: Capture
) -> None:
    done = run_command(capsys, "dlq", "show", lake, "db", "t", 1, 1)
    assert (done.code, "no dead letter of t/1 at 1" in done.err) == (2, True)
    assert run_command(capsys, "dlq", "show", lake, "db", "t", 0, 1, "--format", "x").code == 2
    assert run_command(capsys, "dlq", "list", lake, "db.other").code == 2


def test_a_replay_sends_each_record_once_and_again_only_when_asked(
    lake: Path, capsys: Capture, sent: Sent
) -> None:
    to = ("replay", lake, "db", "--bootstrap", "b:1")
    assert shown(capsys, *to, "--dry-run")["sent"] == 4
    assert sent == []
    done = shown(capsys, *to, "--topic", "t")
    assert (done["sent"], done["without_record"], done["topics"]) == (3, 1, {"t": 3})
    assert [(where, topic, one.key, one.value, one.partition) for where, topic, one in sent] == [
        ("b:1", "t", b"k1", b"v1", 0),
        ("b:1", "t", b"k2", b"v2", 0),
        ("b:1", "t", None, b"\xff\x00", 0),
    ]
    assert [one.headers for _, _, one in sent] == [(), (("id", b"\x00\xff"), ("x", b"y")), ()]
    done = shown(capsys, *to)
    assert (done["sent"], done["replayed_before"], done["topics"]) == (1, 3, {"u": 1})
    assert sent[3][2].partition == 1
    assert shown(capsys, *to)["sent"] == 0
    assert shown(capsys, *to, "--again", "--stage", "cast")["sent"] == 1
    groups = shown(capsys, "count", lake, "db")["groups"]
    assert [(g["dead_letters"], g["replayed"]) for g in groups] == [(2, 2), (1, 1), (1, 0), (1, 1)]


def test_a_letter_of_a_topic_that_was_created_again_was_not_replayed(
    lake: Path, capsys: Capture, sent: Sent
) -> None:
    """It has the offset of a letter that was replayed, and another time."""
    to = ("replay", lake, "db", "--bootstrap", "b:1")
    assert shown(capsys, *to)["sent"] == 4
    table = load_catalog("filesystem", str(lake), {}).get_table(DEAD_LETTERS)
    add(table, 2, [dead_letter(1, timestamp=100 * DAY, value=b"new")])
    assert shown(capsys, "purge", lake, "db", "--replayed")["dead_letters"] == 4
    assert offsets(capsys, lake) == [1, 5]
    done = shown(capsys, *to)
    assert (done["sent"], done["replayed_before"]) == (1, 0)
    assert sent[-1][2].value == b"new"
    assert shown(capsys, *to)["sent"] == 0


def test_marks_of_older_versions_count_for_every_letter_of_their_offset(
    lake: Path, capsys: Capture, sent: Sent
) -> None:
    to = ("replay", lake, "db", "--bootstrap", "b:1")
    shown(capsys, *to, "--topic", "t")
    catalog = load_catalog("filesystem", str(lake), {})
    marks = Identifier("db", "ingestd_dead_letters_replays")
    catalog.alter_table(marks, [DropColumn("timestamp")], 0)
    assert shown(capsys, *to, "--dry-run")["sent"] == 1
    shown(capsys, *to)
    assert catalog.get_table(marks).schema.field_names[-1] == "timestamp"
    assert shown(capsys, *to)["sent"] == 0


def test_another_topic_chooses_partitions_by_key(lake: Path, capsys: Capture, sent: Sent) -> None:
    shown(capsys, "replay", lake, "db", "--bootstrap", "b:1", "--to-topic", "mended")
    assert {(topic, one.partition) for _, topic, one in sent} == {("mended", None)}


def test_what_could_not_be_sent_is_not_marked(
    lake: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> int:
        raise SourceError("no broker")

    monkeypatch.setattr(dead_letter_replay, "produce", silent)
    assert run_command(capsys, "dlq", "replay", lake, "db", "--bootstrap", "b:1").code == 3
    assert shown(capsys, "replay", lake, "db", "--bootstrap", "b:1", "--dry-run")["sent"] == 4


def test_a_configuration_knows_the_clusters_of_its_sources(
    lake: Path, capsys: Capture, sent: Sent
) -> None:
    text = """
    warehouse: {path: lake}
    sources: {NAME: {kafka: {bootstrap.servers: "c:9"}, topics: [t], format: json}}
    """
    file = lake / "p.yaml"
    file.write_text(text.replace("NAME", "src"))
    assert shown(capsys, "replay", lake, "db", "--config", file, "--stage", "cast")["sent"] == 1
    assert sent[0][0] == "c:9"
    file.write_text(text.replace("NAME", "other"))
    done = run_command(capsys, "dlq", "replay", lake, "db", "--config", file)
    assert (done.code, "no source 'src'" in done.err) == (2, True)
    assert "give --bootstrap HOST:PORT instead of --config" in done.err
    assert run_command(capsys, "dlq", "replay", lake, "db", "--bootstrap", "c:9").code == 0
    assert run_command(capsys, "dlq", "replay", lake, "db").code == 2


def test_a_purge_deletes_what_is_asked_for(lake: Path, capsys: Capture, sent: Sent) -> None:
    assert (
        shown(capsys, "purge", lake, "db", "--older-than", "1h", "--dry-run")["dead_letters"] == 4
    )
    assert offsets(capsys, lake) == [1, 2, 3, 4, 5]
    shown(capsys, "replay", lake, "db", "--bootstrap", "b:1", "--stage", "cast")
    done = shown(capsys, "purge", lake, "db", "--replayed")
    assert (done["dead_letters"], done["snapshot"]) == (1, 3)
    assert offsets(capsys, lake) == [1, 3, 4, 5]
    shown(capsys, "purge", lake, "db", "--topic", "t", "--reason", "not_json")
    assert offsets(capsys, lake) == [4, 5]
    shown(capsys, "purge", lake, "db", "--all")
    assert offsets(capsys, lake) == []


def test_a_purge_wants_to_know_what(lake: Path, capsys: Capture) -> None:
    for options in ((), ("--all", "--topic", "t"), ("--older-than", "soon")):
        assert run_command(capsys, "dlq", "purge", lake, "db", *options).code == 2
    assert offsets(capsys, lake) == [1, 2, 3, 4, 5]

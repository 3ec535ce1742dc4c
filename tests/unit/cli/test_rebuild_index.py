import json
from pathlib import Path

import pytest

from ingestd.cli import rebuild_index
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.command_line import run_command
from tests.support.native_tables import NOW_MS, native_table, put, rows_table

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path) -> FileStoreTable:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}
    columns = [("id", "INT"), ("day", "DATE")]
    table = native_table(tmp_path, columns, keys=["id", "day"], options=options)
    put(table, [{"id": n, "day": 19_000} for n in range(6)])
    return table


def lose_indexes(table: FileStoreTable) -> None:
    for entry in load_state(table).index_entries.values():
        path = table.paths.index(entry.file_name)
        table.io.delete_quietly(path)
        HASH_CACHE.discard(path)


def double(table: FileStoreTable, key: int) -> None:
    """A row of a known key in a bucket of its own, which no index tells of."""
    rows = rows_table(table.schema, [{"id": key, "day": 19_000}], 50)
    message = write_bucket(table, EMPTY_ROW, 7, rows, new_name=data_file_names(table))
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
    commit(table, "u", committable, state=load_state(table), now_ms=NOW_MS)


def test_a_lost_index_is_rebuilt_and_reported(
    table: FileStoreTable, tmp_path: Path, capsys: Capture
) -> None:
    sound = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes")
    assert sound.out == "db.t: nothing was changed, the index is correct in 2 buckets.\n"
    lose_indexes(table)
    planned = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--dry-run")
    assert planned.code == 0
    assert "It would be: db.t: the index of 2 of 2 buckets rebuilt." in planned.out
    assert "is missing" in planned.out
    done = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes", "--json")
    told = json.loads(done.out)
    assert (told["snapshot"], told["dry_run"], told["keys"]) == (2, False, [])
    assert [(row["bucket"], row["keys"], row["missing"]) for row in told["repaired"]] == [
        (0, 4, 4),
        (1, 2, 2),
    ]
    assert run_command(capsys, "verify", tmp_path, "db.t").code == 0


def test_keys_in_several_buckets_are_named(
    table: FileStoreTable, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    double(table, 3)
    done = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes", "--json")
    told = json.loads(done.out)
    assert done.code == 1
    assert told["keys_in_several_buckets"] == 1
    assert told["keys"] == [
        {
            "partition": "",
            "key": {"id": "3", "day": "2022-01-08"},
            "buckets": [0, 7],
            "written_to": 7,
        }
    ]
    monkeypatch.setattr(rebuild_index, "MOST_KEYS", 0)
    again = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes")
    assert again.code == 1
    assert "1 key in several buckets" in again.out
    assert "2022-01-08" not in again.out


def test_only_the_newest_rows_stay_where_that_is_asked_for(
    table: FileStoreTable, tmp_path: Path, capsys: Capture
) -> None:
    double(table, 3)
    done = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes", "--drop-doubled")
    assert done.code == 0
    assert "1 older row dropped from 1 file by snapshot 5." in " ".join(done.out.split())
    assert run_command(capsys, "verify", tmp_path, "db.t").code == 0
    again = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes", "--json")
    told = json.loads(again.out)
    assert (again.code, told["keys_in_several_buckets"], told["rows_dropped"]) == (0, 0, 0)


def test_a_table_without_index_is_refused(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("id", "INT")], keys=["id"], options={"bucket": "2"})
    done = run_command(capsys, "rebuild-index", tmp_path, "db.t", "--yes")
    assert done.code != 0
    assert "db.t has no hash index" in done.err

import json
from pathlib import Path

import pytest

from ingestd.paimon.spec.schema_change import SetOption
from tests.support.command_line import run_command
from tests.support.native_tables import alter, native_table, put

Capture = pytest.CaptureFixture[str]


def test_indexes_of_older_files_are_written_and_reported(tmp_path: Path, capsys: Capture) -> None:
    table = native_table(tmp_path, [("p", "INT"), ("v", "STRING")], partitions=["p"])
    put(table, [{"p": 1, "v": "a"}, {"p": 2, "v": "b"}])
    put(table, [{"p": 1, "v": "c"}])
    words = ("rewrite-file-index", tmp_path, "db.t")
    refused = run_command(capsys, *words)
    assert refused.code == 2
    assert "has no file indexes" in refused.err
    alter(table, SetOption("file-index.bitmap.columns", "v"))
    planned = run_command(capsys, *words, "--dry-run")
    assert "It would be: db.t: file indexes of 3 files written." in planned.out
    done = run_command(capsys, *words, "--partition", "p=1", "--json")
    assert json.loads(done.out) == {
        "table": "db.t", "dry_run": False,
        "partitions": [{"partition": "p=1", "files": 2, "indexed": 2, "snapshot": 3}],
    }  # fmt: skip
    done = run_command(capsys, *words)
    assert "db.t: file indexes of 1 file written." in done.out
    assert "p=2" in done.out
    done = run_command(capsys, *words)
    assert done.out == "db.t: nothing was changed, all files have their indexes.\n"

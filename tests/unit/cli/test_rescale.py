import json
from pathlib import Path

import pytest

from ingestd.paimon.spec.schema_change import SetOption
from tests.support.command_line import run_command
from tests.support.native_tables import alter, native_table, open_native, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    columns = [("p", "INT"), ("k", "INT")]
    table = native_table(
        tmp_path, columns, keys=["p", "k"], partitions=["p"], options={"bucket": "2"}
    )
    put(table, [{"p": n % 2, "k": n} for n in range(20)])
    return tmp_path


def test_a_table_gets_another_number_of_buckets(lake: Path, capsys: Capture) -> None:
    done = run_command(capsys, "rescale", lake, "db.t", "--buckets", 3, "--yes", "--json")
    told = json.loads(done.out)
    assert (done.code, told["snapshots"], told["rows_written"]) == (0, [2], 20)
    assert [(row["partition"], row["buckets_before"]) for row in told["partitions"]] == [
        ("p=0", 2),
        ("p=1", 2),
    ]
    assert open_native(lake).options.bucket == 3
    assert run_command(capsys, "verify", lake, "db.t").code == 0
    again = run_command(capsys, "rescale", lake, "db.t", "--buckets", 3, "--yes")
    assert again.out == "db.t: everything is in 3 buckets already.\n"


def test_a_dry_run_changes_nothing(lake: Path, capsys: Capture) -> None:
    done = run_command(capsys, "rescale", lake, "db.t", "--buckets", 3, "--dry-run")
    assert "It would be: db.t: 2 partitions rewritten into 3 buckets." in done.out
    assert open_native(lake).options.bucket == 2


def test_partitions_are_chosen_and_the_others_follow(lake: Path, capsys: Capture) -> None:
    one = run_command(
        capsys, "rescale", lake, "db.t", "--buckets", 4, "--yes", "--partition", "p=1", "--json"
    )
    assert [row["partition"] for row in json.loads(one.out)["partitions"]] == ["p=1"]
    rest = run_command(capsys, "rescale", lake, "db.t", "--buckets", 4, "--yes", "--json")
    assert [row["partition"] for row in json.loads(rest.out)["partitions"]] == ["p=0"]
    assert run_command(capsys, "verify", lake, "db.t").code == 0


def test_what_cannot_be_is_refused_before_anything_is_changed(lake: Path, capsys: Capture) -> None:
    none = run_command(capsys, "rescale", lake, "db.t", "--buckets", 0)
    assert none.code == 2
    assert "use at least 1" in none.err
    native_table(lake / "dynamic", [("id", "INT")], keys=["id"])
    done = run_command(capsys, "rescale", lake / "dynamic", "db.t", "--buckets", 2, "--yes")
    assert done.code == 2
    assert "'bucket' = '-1'" in done.err


def test_rows_that_wait_get_a_bucket_in_the_way_that_the_refusal_names(
    tmp_path: Path, capsys: Capture
) -> None:
    table = native_table(tmp_path, [("id", "INT")], keys=["id"], options={"bucket": "-2"})
    put(table, [{"id": 1}, {"id": 2}])
    rescale = ["rescale", tmp_path, "db.t", "--buckets", 4, "--yes"]
    waiting = run_command(capsys, *rescale)
    assert f"give them one first with `ingestd compact {tmp_path} db.t`" in waiting.err
    alter(open_native(tmp_path), SetOption("bucket", "4"))
    refused = run_command(capsys, *rescale)
    assert refused.code == 2
    assert "set it back to -2 and run `ingestd compact" in refused.err
    alter(open_native(tmp_path), SetOption("bucket", "-2"))
    assert run_command(capsys, "compact", tmp_path, "db.t").code == 0
    alter(open_native(tmp_path), SetOption("bucket", "4"))
    assert run_command(capsys, *rescale).code == 0
    assert run_command(capsys, "verify", tmp_path, "db.t").code == 0
    rows = run_command(capsys, "read", tmp_path, "db.t").out
    assert sorted(json.loads(line)["id"] for line in rows.splitlines()) == [1, 2]

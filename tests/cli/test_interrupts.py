"""SIGINT at each step of a command: what it says, a sound table, and that it finishes if run again.

Steps are calls to storage and the named points of `ingestd.crash_points`. In short some of them,
with INGESTD_LONG=1 each.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

import pytest

from ingestd.cli import dead_letter_replay, interrupts
from ingestd.cli.main import execute
from ingestd.crash_points import CrashPoint
from ingestd.ingest.dead_letters.dead_letter import COLUMNS
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.metadata.time_travel import tag_names
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from tests.cli.interruptions import Steps, run_stepwise
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put

Capture = pytest.CaptureFixture[str]
LONG = "INGESTD_LONG" in os.environ
TRIES = 5
"""Steps of a command that are tried in short."""


def keyed(warehouse: Path) -> None:
    table = native_table(warehouse, [("id", "INT"), ("v", "INT")], keys=["id"],
                         options={"bucket": "2"})  # fmt: skip
    for turn in range(4):
        put(table, [{"id": n, "v": turn} for n in range(turn, 9)])


def parted(warehouse: Path) -> None:
    columns = [("p", "STRING"), ("k", "INT")]
    table = native_table(warehouse, columns, partitions=["p"], options={"bucket": "-1"})
    for turn in range(2):
        put(table, [{"p": f"200{n % 3}-01-01", "k": (7 * n + turn) % 10} for n in range(10)])


def unindexed(warehouse: Path) -> None:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}
    table = native_table(warehouse, [("id", "INT")], keys=["id"], options=options)
    put(table, [{"id": n} for n in range(9)])
    for entry in load_state(table).index_entries.values():
        path = table.paths.index(entry.file_name)
        table.io.delete_quietly(path)
        HASH_CACHE.discard(path)


def indexless(warehouse: Path) -> None:
    """Data files without the file indexes that the options require now."""
    parted(warehouse)
    options = {"file-index.bitmap.columns": "k", "file-index.in-manifest-threshold": "1 b"}
    alter(open_native(warehouse), *starmap(SetOption, options.items()))


def tagged(warehouse: Path) -> None:
    keyed(warehouse)
    table = open_native(warehouse)
    for name in ("a", "b"):
        newest = latest_snapshot(table.io, table.paths)
        assert newest is not None
        create_tag(table, name, newest, retained_ms=1, now_ms=NOW_MS)
    alter(table, SetOption("tag.automatic-creation", "process-time"))


def littered(warehouse: Path) -> None:
    keyed(warehouse)
    for name in ("manifest/manifest-lost", "bucket-0/data-lost.parquet"):
        (warehouse / "db.db/t" / name).write_bytes(b"lost")


def outlived(warehouse: Path) -> None:
    """Changelogs that are longer than their snapshots, and may be shorter."""
    keyed(warehouse)
    kept = {"snapshot.num-retained.max": "1", "snapshot.num-retained.min": "1"}
    longer = {"changelog.num-retained.min": "4", "changelog.num-retained.max": "4"}
    table = alter(open_native(warehouse), *starmap(SetOption, (kept | longer).items()))
    expire_snapshots(table, expire_settings(table.schema.options), NOW_MS)


def lettered(warehouse: Path) -> None:
    """Dead letters in two files."""
    columns = [(name, str(kind)) for name, kind in COLUMNS if name != "headers"]
    table = native_table(warehouse, columns, options={"bucket": "-1"})
    for first in (0, 3):
        put(table, [dead_letter(offset) for offset in range(first, first + 3)])


def dead_letter(offset: int) -> dict[str, object]:
    texts = dict.fromkeys(("reason", "message", "job", "table"), "x")
    record = {"key": b"k", "value": b"v", "timestamp": None}
    place = {"source": "s", "topic": "t", "partition": 0, "offset": offset}
    return {**place, **record, **texts, "stage": "cast" if offset % 2 else "decode"}


@dataclass(frozen=True)
class Work:
    """A table and a command on it; `rest` are the words behind the name of the table."""

    make: Callable[[Path], None]
    command: Sequence[str]
    rest: Sequence[str] = ()

    def words(self, warehouse: Path) -> list[object]:
        return [*self.command, warehouse, "db.t", *self.rest]


WORKS = {
    "verify": Work(keyed, ["verify"]),
    "read": Work(keyed, ["read"], ["-o", "rows.jsonl"]),
    "analyze": Work(keyed, ["analyze"]),
    "compact": Work(keyed, ["compact"], ["--full"]),
    "sort": Work(parted, ["compact"], ["--order-by", "k"]),
    "rescale": Work(keyed, ["rescale"], ["--buckets", "3", "--yes"]),
    "rebuild-index": Work(unindexed, ["rebuild-index"], ["--yes"]),
    "rewrite-file-index": Work(indexless, ["rewrite-file-index"]),
    "expire snapshots": Work(keyed, ["expire", "snapshots"], ["--retain-max", "1"]),
    "expire changelogs": Work(
        outlived, ["expire", "changelogs"], ["--retain-min", "2", "--retain-max", "2"]
    ),
    "expire partitions": Work(parted, ["expire", "partitions"], ["--expiration-time", "9000 d"]),
    "expire tags": Work(tagged, ["expire", "tags"]),
    "remove-orphans": Work(littered, ["remove-orphans"], ["--older-than", "0 ms", "--yes"]),
    "rollback": Work(keyed, ["rollback"], ["--snapshot", "2", "--yes"]),
    "truncate": Work(keyed, ["truncate"], ["--yes"]),
    "dlq replay": Work(lettered, ["dlq", "replay"], ["--bootstrap", "broker-0:9092"]),
    "dlq purge": Work(lettered, ["dlq", "purge"], ["--stage", "cast"]),
}


@dataclass(frozen=True)
class Told:
    """What the world can see of a table, whatever the names of its files."""

    rows: list[dict[str, object]]
    files: Counter[tuple[bytes, int, int, int]]
    snapshots: int | None
    changelogs: tuple[int, ...]
    tags: tuple[str, ...]
    strays: tuple[str, ...]

    @classmethod
    def of(cls, table: FileStoreTable, name: str) -> "Told":
        live = live_files(table, latest_snapshot(table.io, table.paths))
        ids = snapshot_ids(table.io, table.paths)
        one = [(e.partition, e.bucket, e.total_buckets, e.file.row_count) for e in live]
        rows = sorted(read_table(table).to_pylist(), key=repr)
        strays = tuple(sorted(path.name for path in Path(table.path).rglob("*lost*")))
        kept = len(ids) if name in ("expire snapshots", "rollback") else None
        changelogs = tuple(changelog_ids(table))
        tags = tuple(tag_names(table.io, table.paths))
        return cls(rows, Counter(one), kept, changelogs, tags, strays)


def unsound(warehouse: Path) -> list[object]:
    """All findings but a stale hint: readers look beyond it, and the next expiry mends it."""
    return [one for one in verify(open_native(warehouse)) if one.code != "hint"]


def copied(made: Path, warehouse: Path) -> Path:
    return Path(shutil.copytree(made, warehouse))


@pytest.mark.parametrize("name", WORKS)
def test_an_interrupt_at_any_step_leaves_a_sound_table_and_the_command_finishes_when_run_again(
    name: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WORKS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dead_letter_replay, "produce", lambda source, topic, sent: len(list(sent)))
    made = tmp_path / "made"
    work.make(made)
    calm, steps = copied(made, tmp_path / "calm"), Steps()
    assert run_stepwise(capsys, steps, *work.words(calm)).code == 0
    wanted = Told.of(open_native(calm), name)
    assert steps.passed > TRIES
    Path("rows.jsonl").unlink(missing_ok=True)
    points = [n for n, step in enumerate(steps.names, 1) if step in set(CrashPoint)]
    even = range(1, steps.passed, 1 if LONG else max(1, steps.passed // TRIES))
    interrupted = 0
    for at in sorted({*even, *points[:: 1 if LONG else max(1, len(points) // TRIES)]}):
        warehouse = copied(made, tmp_path / str(at))
        where = (name, at, steps.names[at - 1])
        done = run_stepwise(capsys, Steps(at), *work.words(warehouse))
        assert done.code in (0, 130), (where, done.err)
        if done.code == 130:
            interrupted += 1
            assert done.err.startswith("interrupted: "), where
            assert "un the same command again" in done.err or "run again" in done.err, where
            assert "Traceback" not in done.err
            assert list(tmp_path.glob("*rows.jsonl*")) == [], where
        if name != "rebuild-index":
            assert unsound(warehouse) == [], where
        again = run_stepwise(capsys, Steps(), *work.words(warehouse))
        assert again.code == 0, (where, again.err)
        assert unsound(warehouse) == [], where
        assert Told.of(open_native(warehouse), name) == wanted, where
        shutil.rmtree(warehouse)
        Path("rows.jsonl").unlink(missing_ok=True)
    assert interrupted > TRIES / 2


def test_an_interrupt_of_any_other_work_is_reported_too(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ingestd.cli.main.app", interrupt)
    assert execute(["tables"]) == interrupts.EXIT_CODE
    assert capsys.readouterr().err.startswith("interrupted: it has stopped before its end.")


def test_the_words_are_those_of_the_work_that_was_interrupted() -> None:
    def work() -> None:
        with interrupts.interruptible("counting", "sheep\x07", "Count again."):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    end = SystemExit(130)
    end.__context__ = caught.value
    assert interrupts.interrupt_message(end) == "counting sheep\\x07 has stopped. Count again."

"""Where new files are, in the directory of the table and outside."""

from pathlib import Path

import pytest

from ingestd.errors import ConfigError, IngestdError, UnsupportedError
from ingestd.paimon.table.commit.overwrite import drop_partitions
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.files.data_files import new_data_file
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put

COLUMNS = [("day", "STRING"), ("id", "INT"), ("v", "STRING")]
LATER = 1 << 50


def _table(tmp_path: Path, **options: str) -> FileStoreTable:
    return native_table(
        tmp_path / "w", COLUMNS, keys=["day", "id"], partitions=["day"],
        options={
            "bucket": "2", "file-index.bloom-filter.columns": "v", "changelog-producer": "input",
            "file-index.in-manifest-threshold": "1 b", "snapshot.num-retained.min": "1",
            "snapshot.num-retained.max": "1", **options,
        },
    )  # fmt: skip


def _external(tmp_path: Path, strategy: str) -> dict[str, str]:
    return {
        "data-file.external-paths": f"file://{tmp_path}/one, file:{tmp_path}/two/",
        "data-file.external-paths.strategy": strategy,
    }


def _rows(table: FileStoreTable) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in read_table(table).to_pylist())


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject", "specific-fs", "none"])
def test_files_outside_live_and_expire_with_their_snapshots(strategy: str, tmp_path: Path) -> None:
    specific = {"data-file.external-paths.specific-fs": "file"}
    options = {**_external(tmp_path, strategy), "data-file.path-directory": "data/x"}
    table = _table(tmp_path, **options, **specific)
    for step in range(6):
        put(table, [{"day": d, "id": n, "v": f"{step}"} for d in "ab" for n in range(4)])
    outside = [path for root in ("one", "two") for path in (tmp_path / root).rglob("*.parquet")]
    inside = list((tmp_path / "w" / "db.db" / "t" / "data" / "x").rglob("*.parquet"))
    assert (len(inside) == 0) == (strategy != "none")
    assert (len(outside) == 0) == (strategy == "none")
    if outside:
        assert {path.relative_to(tmp_path).parts[0] for path in outside} == {"one", "two"}
    compact_table(table, full=True, now_ms=NOW_MS)
    expected = [(d, n, "5") for d in "ab" for n in range(4)]
    assert _rows(table) == expected
    assert find_orphans(table, LATER, external=True).files == ()
    assert verify(table) == []
    expire_snapshots(table, expire_settings(table.schema.options), LATER)
    assert _rows(table) == expected
    live = {
        entry.file.file_name for entry in live_files(table, latest_snapshot(table.io, table.paths))
    }
    assert {path.name for path in tmp_path.rglob("data-*.parquet")} == live
    for path in (*outside[:1], *tmp_path.rglob("data-*.parquet")):
        path.with_name(f"lost-{path.name}").write_bytes(b"")
    lost = {str(path) for path in tmp_path.rglob("lost-*")}
    found = find_orphans(table, LATER, external=True)
    assert {file.path for file in found.files} == lost
    assert len(find_orphans(table, LATER).files) == (len(lost) if strategy == "none" else 0)
    remove_orphans(table, found)
    assert _rows(table) == expected
    assert not list(tmp_path.rglob("lost-*"))
    drop_partitions(table, [{"day": "a"}, {"day": "b"}], now_ms=NOW_MS)
    expire_snapshots(table, expire_settings(table.schema.options), LATER)
    assert not list(tmp_path.rglob("*.parquet*"))


def test_orphans_are_found_below_a_path_directory(tmp_path: Path) -> None:
    table = _table(tmp_path, **{"data-file.path-directory": "data/x"})
    put(table, [{"day": "a", "id": 1, "v": "v"}])
    bucket = next((tmp_path / "w" / "db.db" / "t" / "data" / "x" / "day=a").glob("bucket-*"))
    (bucket / "data-lost-0.parquet").write_bytes(b"x")
    assert [Path(o.path).name for o in find_orphans(table, LATER).files] == ["data-lost-0.parquet"]


def test_a_path_directory_does_not_lead_out_of_the_table(tmp_path: Path) -> None:
    table = _table(tmp_path, **{"data-file.path-directory": "data/../../x"})
    with pytest.raises(ConfigError, match="leads out of the table"):
        put(table, [{"day": "a", "id": 1, "v": "v"}])


def test_a_hash_of_the_name_is_part_of_the_path(tmp_path: Path) -> None:
    table = _table(tmp_path, **_external(tmp_path, "entropy-inject"))
    file = new_data_file(table, ("a",), 1, "data-1-0.parquet")
    assert file.path == file.external
    directories = Path(file.path).parts[-5:-1]
    assert [len(name) for name in directories] == [4, 4, 4, 8]
    assert set("".join(directories)) <= {"0", "1"}


@pytest.mark.parametrize(
    ("paths", "strategy", "error", "message"),
    [
        ("/x", "round-robin", ConfigError, "needs a scheme"),
        ("s3://b/x", "round-robin", UnsupportedError, "another kind of storage"),
        ("file:/x", "specific-fs", ConfigError, "has the scheme 'oss'"),
    ],
)
def test_paths_that_cannot_be_written_are_refused_by_name(
    paths: str, strategy: str, error: type[IngestdError], message: str, tmp_path: Path
) -> None:
    table = _table(
        tmp_path,
        **{
            "data-file.external-paths": paths, "data-file.external-paths.strategy": strategy,
            "data-file.external-paths.specific-fs": "oss",
        },
    )  # fmt: skip
    with pytest.raises(error, match=message):
        put(table, [{"day": "a", "id": 1, "v": "v"}])

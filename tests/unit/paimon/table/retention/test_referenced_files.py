"""Whatever manifests say, nothing outside the table is deleted."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import (
    decode_index_manifest,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from ingestd.paimon.spec.snapshot import encode_snapshot, parse_snapshot
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.metadata_tables import data_file, hash_file
from tests.support.native_tables import NOW_MS, native_table, put

LATER = NOW_MS + 10_000_000
SETTINGS = {"snapshot.num-retained.min": "1"}


def table_with(folder: Path, file: DataFileMeta, options: dict[str, str]) -> FileStoreTable:
    """A table that had a file and has deleted it; its two snapshots are there."""
    table = native_table(folder, [("v", "INT")], options={"bucket": "-1"})
    message = CommitMessage(EMPTY_ROW, 0, -1, new_files=(file,))
    committable = ManifestCommittable(1, (message,))
    commit(table, "them", committable, state=load_state(table), now_ms=NOW_MS)
    truncate_table(table, now_ms=NOW_MS)
    schema = replace(table.schema, options={**table.schema.options, **options})
    return table.with_schema(schema)


def precious(folder: Path) -> Path:
    path = folder / "elsewhere" / "db.db" / "t" / "data-1.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"precious")
    return path


def expire(table: FileStoreTable) -> tuple[str, ...]:
    return expire_snapshots(table, expire_settings(SETTINGS), LATER).files


def test_a_foreign_external_path_stays(tmp_path: Path) -> None:
    path = precious(tmp_path)
    file = replace(data_file("data-1.parquet"), external_path=f"file:{path}")
    table = table_with(tmp_path / "w", file, {})
    first = read_snapshot(table.io, table.paths, 1)
    create_tag(table, "t", first, now_ms=NOW_MS)
    assert not any(path.name in one for one in expire(table))
    assert not any(path.name in one for one in delete_tags(table, "t"))
    assert path.exists()


def test_one_that_leads_out_of_its_place_stays(tmp_path: Path) -> None:
    path = precious(tmp_path)
    for root in (f"{tmp_path}/external", f"{tmp_path}/w/db.db/t"):
        Path(root).mkdir(parents=True)
    outside = f"{tmp_path}/external/../elsewhere/db.db/t/data-1.parquet"
    file = replace(data_file("data-1.parquet"), external_path=outside)
    table = table_with(tmp_path / "w", file, {"data-file.external-paths": f"{tmp_path}/external"})
    expire(table)
    assert path.exists()


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_one_below_the_external_paths_of_the_table_goes(tmp_path: Path, scheme: str) -> None:
    path = precious(tmp_path)
    file = replace(data_file("data-1.parquet"), external_path=f"{scheme}{path}")
    options = {"data-file.external-paths": f"file:///nowhere, file://{tmp_path}/elsewhere/"}
    table = table_with(tmp_path / "w", file, options)
    assert any(path.name in one for one in expire(table))
    assert not path.exists()


@pytest.mark.parametrize("name", ["../../../victim", "/etc/passwd", "..", ".", "a/b", "", "a\0b"])
def test_a_name_that_leads_elsewhere_is_damage(name: str) -> None:
    file, data = data_file("f"), replace(data_file("f"), extra_files=(name,))
    for bad in (replace(file, file_name=name), data):
        entry = ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, -1, bad)
        with pytest.raises(FormatError, match=r"manifest m has .* is not the name of a file"):
            decode_manifest(encode_manifest([entry]), "m")
    meta = ManifestFileMeta(name, 1, 1, 0, file.value_stats, 0)
    with pytest.raises(FormatError, match=r"manifest list m has .* is not the name of a file"):
        decode_manifest_list(encode_manifest_list([meta]), "m")
    with pytest.raises(FormatError, match=r"index manifest m has .* is not the name of a file"):
        decode_index_manifest(pack_index_records(encode_index_records([hash_file(name)])), "m")


@pytest.mark.parametrize(
    "field",
    ["base_manifest_list", "delta_manifest_list", "changelog_manifest_list", "index_manifest",
     "statistics"],
)  # fmt: skip
def test_so_is_one_in_a_snapshot(field: str) -> None:
    table = native_table("/w", [("v", "INT")], options={"bucket": "-1"}, io=MemoryFileIO())
    put(table, [{"v": 1}])
    bad = replace(read_snapshot(table.io, table.paths, 1), **{field: "../snapshot/snapshot-1"})
    with pytest.raises(FormatError, match=r"snapshot file s .* is not the name of a file"):
        parse_snapshot(encode_snapshot(bad), "s")

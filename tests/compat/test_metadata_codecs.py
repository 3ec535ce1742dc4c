"""Java reads tables whose metadata was decoded and written again here, and finds no fault."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.paimon.spec.index_manifest import (
    decode_index_manifest,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import (
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from ingestd.paimon.spec.schema import encode_schema, parse_schema
from ingestd.paimon.spec.snapshot import encode_snapshot, parse_snapshot
from tests.support.java_tables import ROOT
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

TABLES = ["pk_partitioned_fixed", "pk_dynamic", "partition_special", "stats_modes"]


def files(table: Path, pattern: str) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(table.glob(pattern)):
        yield path, path.read_bytes()


def write_again(table: Path) -> None:
    """Replace every metadata file by what the codecs make of it, sizes included."""
    sizes: dict[str, int] = {}

    def write(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        sizes[path.name] = len(data)

    for path, data in files(table, "schema/schema-*"):
        write(path, encode_schema(parse_schema(data, path.name)))
    for path, data in files(table, "manifest/index-manifest-*"):
        write(
            path, pack_index_records(encode_index_records(decode_index_manifest(data, path.name)))
        )
    for path, data in files(table, "manifest/manifest-[!l]*"):
        write(path, encode_manifest(decode_manifest(data, path.name)))
    for path, data in files(table, "manifest/manifest-list-*"):
        metas = decode_manifest_list(data, path.name)
        resized = [replace(meta, file_size=sizes[meta.file_name]) for meta in metas]
        write(path, encode_manifest_list(resized))
    for path, data in files(table, "snapshot/snapshot-*"):
        snapshot = parse_snapshot(data, path.name)
        resized_snapshot = replace(
            snapshot,
            base_manifest_list_size=sizes[snapshot.base_manifest_list],
            delta_manifest_list_size=sizes[snapshot.delta_manifest_list],
        )
        write(path, encode_snapshot(resized_snapshot))


@pytest.mark.parametrize("name", TABLES)
def test_java_reads_metadata_that_was_written_again(
    name: str, tmp_path: Path, oracle: Oracle
) -> None:
    for database in ("java", "ours"):
        shutil.copytree(ROOT / name, tmp_path / f"{database}.db" / "t")
    write_again(tmp_path / "ours.db" / "t")
    rows = oracle.read(str(tmp_path), "java", "t")
    assert rows
    assert oracle.read(str(tmp_path), "ours", "t") == rows
    assert oracle.fsck(str(tmp_path), "ours", "t") == []

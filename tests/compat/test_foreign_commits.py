"""Snapshots of ours between snapshots of Java: each side goes on from what the other left."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.metadata_tables import NOW_MS
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

TABLES: dict[str, dict[str, Any]] = {
    "fixed": {"primaryKey": ["k", "p"], "partitionKeys": ["p"], "options": {"bucket": "2"}},
    "dynamic": {
        "primaryKey": ["k", "p"],
        "partitionKeys": ["p"],
        "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "5"},
    },
    "append": {"primaryKey": [], "partitionKeys": ["p"], "options": {"bucket": "-1"}},
}


def rows(start: int, count: int) -> list[dict[str, Any]]:
    return [{"k": n, "p": f"part {n % 3}", "v": f"value {n}"} for n in range(start, start + count)]


@pytest.fixture(params=sorted(TABLES))
def table(request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path) -> FileStoreTable:
    """Two commits of Java; partitioned by text, 30 keys."""
    spec = {
        "database": "db",
        "table": "t",
        "fields": [
            {"name": "k", "type": "INT NOT NULL"},
            {"name": "p", "type": "STRING NOT NULL"},
            {"name": "v", "type": "STRING"},
        ],
        "steps": [
            {"commit": {"rows": rows(0, 20), "user": "java", "identifier": 1, "compact": "none"}},
            {"commit": {"rows": rows(10, 20), "user": "java", "identifier": 2, "compact": "none"}},
        ],
        **TABLES[request.param],
    }
    oracle.write_spec(spec, tmp_path / "warehouse", tmp_path)
    return load_catalog("filesystem", str(tmp_path / "warehouse")).get_table(Identifier("db", "t"))


def ours(
    table: FileStoreTable, identifier: int, state: TableState, *messages: CommitMessage,
    overwrite: bool = False,
) -> CommitResult:  # fmt: skip
    committable = ManifestCommittable(
        identifier, messages, properties={"note": str(identifier)}, overwrite=overwrite
    )
    return commit(table, "ours", committable, state=state, now_ms=NOW_MS, allow_empty=True)


def adopted(
    live: Sequence[ManifestEntry], index: Sequence[IndexManifestEntry]
) -> list[CommitMessage]:
    """Messages that add files that exist, one for each bucket."""
    return [
        CommitMessage(
            partition,
            bucket,
            total,
            new_files=tuple(e.file for e in live if (e.partition, e.bucket) == (partition, bucket)),
            new_index_files=tuple(
                e for e in index if (e.partition, e.bucket) == (partition, bucket)
            ),
        )
        for partition, bucket, total in sorted(
            {(e.partition, e.bucket, e.total_buckets) for e in live}
        )
    ]


def warehouse(table: FileStoreTable) -> Path:
    return Path(table.path).parent.parent


def assert_sound(oracle: Oracle, table: FileStoreTable) -> None:
    assert oracle.fsck(warehouse(table), "db", "t", "--all") == []


def test_java_reads_files_by_the_manifests_and_snapshots_that_we_wrote(
    oracle: Oracle, table: FileStoreTable
) -> None:
    before = oracle.read(warehouse(table), "db", "t")
    state = load_state(table)
    messages = adopted(live_files(table, state.snapshot), list(state.index_entries.values()))
    for directory in ("snapshot", "manifest"):
        shutil.rmtree(Path(table.path) / directory)
    state = load_state(table)
    for identifier, message in enumerate(messages, 1):
        state = ours(table, identifier, state, message).state
    assert oracle.read(warehouse(table), "db", "t") == before
    assert_sound(oracle, table)


def test_our_stale_state_catches_up_with_what_java_appended_and_compacted(
    oracle: Oracle, table: FileStoreTable, tmp_path: Path
) -> None:
    stale = ours(table, 1, load_state(table)).state
    oracle.append(warehouse(table), "db", "t", rows(100, 40), tmp_path, "--user", "java",
                  "--identifier", "3")  # fmt: skip
    if table.schema.primary_keys:
        oracle.compact(warehouse(table), "db", "t")
    before = oracle.read(warehouse(table), "db", "t")
    result = ours(table, 2, stale)
    assert result.status == "committed"
    fresh = load_state(table)
    assert result.state.snapshot == fresh.snapshot
    assert result.state.manifests == fresh.manifests
    assert result.state.index_entries == fresh.index_entries
    assert result.state.max_sequence_number >= fresh.max_sequence_number
    assert oracle.read(warehouse(table), "db", "t") == before
    assert_sound(oracle, table)


def test_java_goes_on_from_a_table_that_we_emptied(
    oracle: Oracle, table: FileStoreTable, tmp_path: Path
) -> None:
    ours(table, 1, load_state(table), overwrite=True)
    assert oracle.read(warehouse(table), "db", "t") == []
    oracle.append(warehouse(table), "db", "t", rows(0, 7), tmp_path, "--user", "java",
                  "--identifier", "3")  # fmt: skip
    assert sorted(row["k"] for row in oracle.read(warehouse(table), "db", "t")) == list(range(7))
    assert_sound(oracle, table)

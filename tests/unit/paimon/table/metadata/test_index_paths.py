"""Where index files lie."""

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.metadata.index_paths import index_path
from tests.support.native_tables import native_table


@pytest.mark.parametrize(
    ("beside", "external", "expected"),
    [
        ("false", None, "/w/db.db/t/index/index-1"),
        ("true", None, "/w/db.db/t/day=d%2F1/bucket-3/index-1"),
        ("true", "/elsewhere/index-1", "/elsewhere/index-1"),
    ],
)
def test_index_files_lie_in_their_folder_or_beside_their_bucket(
    beside: str, external: str | None, expected: str
) -> None:
    table = native_table(
        "/w",
        [("id", "INT"), ("day", "STRING")],
        keys=["id", "day"],
        partitions=["day"],
        options={"index-file-in-data-file-dir": beside},
        io=MemoryFileIO(),
    )
    partition = serialize_row(table.partition_types, ["d/1"])
    entry = IndexManifestEntry(
        FileKind.ADD, partition, 3, "HASH", "index-1", 4, 1, external_path=external
    )
    assert index_path(table, entry) == expected

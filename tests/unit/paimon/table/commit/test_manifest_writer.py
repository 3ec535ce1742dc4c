"""Manifests on storage: bounds, sizes, rolling."""

import dataclasses
import random

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.table.commit.manifest_writer import (
    partition_bounds,
    write_manifest_list,
    write_manifests,
)
from ingestd.paimon.table.metadata.file_store_scan import (
    read_listed_manifest,
    read_manifest,
    read_manifest_list,
)
from tests.support.metadata_tables import INT, data_file, metadata_table


def entry(name: str, value: int | None, *, kind: FileKind = FileKind.ADD, bucket: int = 0,
          level: int = 0) -> ManifestEntry:  # fmt: skip
    partition = serialize_row([INT], [value])
    return ManifestEntry(kind, partition, bucket, 2, data_file(name, level=level))


def test_lists_and_manifests_that_lost_something_are_no_shorter_ones() -> None:
    table = metadata_table(partition_keys=("p",))
    metas = write_manifests(table, [entry("a", 7), entry("b", 8)])
    name, size = write_manifest_list(table, metas)
    assert read_manifest_list(table.io, table.paths, name, size) == list(metas)
    with pytest.raises(FormatError, match=f"{name} has {size} bytes, expected {size + 1}"):
        read_manifest_list(table.io, table.paths, name, size + 1)
    more = dataclasses.replace(metas[0], num_added_files=3)
    with pytest.raises(FormatError, match=r"manifest-\S+ has 2 entries, expected 3"):
        read_listed_manifest(table.io, table.paths, more)


def test_a_manifest_states_what_it_holds() -> None:
    table = metadata_table(partition_keys=("p",))
    entries = [
        entry("a", 7, bucket=1),
        entry("b", None, level=5),
        entry("c", -3, kind=FileKind.DELETE, bucket=4),
        entry("d", None),
    ]
    (meta,) = write_manifests(table, entries)
    assert read_manifest(table.io, table.paths, meta.file_name) == entries
    assert meta.file_size == table.io.size(table.paths.manifest(meta.file_name))
    assert (meta.num_added_files, meta.num_deleted_files, meta.schema_id) == (3, 1, 0)
    assert (meta.min_bucket, meta.max_bucket, meta.min_level, meta.max_level) == (0, 4, 0, 5)
    assert deserialize_row([INT], meta.partition_stats.min_values) == (-3,)
    assert deserialize_row([INT], meta.partition_stats.max_values) == (7,)
    assert meta.partition_stats.null_counts == (2,)


def test_bounds_of_text_partitions_are_never_cut() -> None:
    text = parse_type("STRING")
    rows = [serialize_row([text], [value]) for value in ("x" * 40, "ab", "é" * 30)]
    stats = partition_bounds([text], rows)
    assert deserialize_row([text], stats.min_values) == ("ab",)
    assert deserialize_row([text], stats.max_values) == ("é" * 30,)


def test_partitions_without_any_value_have_no_bounds() -> None:
    stats = partition_bounds([INT], [serialize_row([INT], [None])] * 2)
    assert deserialize_row([INT], stats.min_values) == (None,)
    assert stats.null_counts == (2,)


def test_an_unpartitioned_table_has_empty_bounds() -> None:
    assert partition_bounds([], [b"anything"]) == EMPTY_STATS


def test_entries_roll_over_to_the_next_manifest_and_keep_their_order() -> None:
    table = metadata_table(partition_keys=("p",), options={"manifest.target-file-size": "4 kb"})
    chance = random.Random(1)
    entries = [entry(f"data-{chance.randbytes(12).hex()}", n) for n in range(700)]
    metas = write_manifests(table, entries)
    assert len(metas) > 2
    assert all(4096 <= meta.file_size <= 6500 for meta in metas[:-1])
    assert sum(meta.num_added_files for meta in metas) == 700
    read = [e for meta in metas for e in read_manifest(table.io, table.paths, meta.file_name)]
    assert read == entries


def test_no_entries_make_no_manifest_but_an_empty_list_is_a_file() -> None:
    table = metadata_table()
    assert write_manifests(table, []) == ()
    name, size = write_manifest_list(table, [])
    assert read_manifest_list(table.io, table.paths, name) == []
    assert table.io.size(table.paths.manifest(name)) == size


def test_a_missing_manifest_is_named() -> None:
    table = metadata_table()
    with pytest.raises(FormatError, match="manifest/manifest-x is missing"):
        read_manifest(table.io, table.paths, "manifest-x")

"""What manifests say of themselves, one by one and joined."""

import pytest

from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import ManifestFileMeta
from ingestd.paimon.table.commit.manifest_writer import joined_meta, partition_bounds

TYPES = (DataType("INT"), DataType("STRING"))


def _meta(
    *partitions: tuple[object, ...], stats: SimpleStats | None = None, bucket: int | None = 0
) -> ManifestFileMeta:
    rows = [serialize_row(TYPES, row) for row in partitions]
    return ManifestFileMeta(
        file_name="m",
        file_size=10,
        num_added_files=len(rows),
        num_deleted_files=0,
        partition_stats=stats or partition_bounds(TYPES, rows),
        schema_id=len(rows),
        min_bucket=bucket,
        max_bucket=bucket,
    )


def _bounds(stats: SimpleStats) -> tuple[tuple[object, ...], tuple[object, ...]]:
    return deserialize_row(TYPES, stats.min_values), deserialize_row(TYPES, stats.max_values)


def test_bounds_and_nulls_of_partitions_count_every_entry() -> None:
    stats = _meta((3, "b"), (1, None), (3, "b"), (2, "a")).partition_stats
    assert _bounds(stats) == ((1, "a"), (3, "b"))
    assert stats.null_counts == (0, 1)


def test_joined_manifests_say_what_one_manifest_of_all_their_entries_would() -> None:
    rows: list[tuple[object, ...]] = [(3, "b"), (1, None), (9, "c"), (None, "a"), (None, "d")]
    parts = [_meta(*rows[:2]), _meta(*rows[2:3]), _meta(*rows[3:])]
    joined = joined_meta(TYPES, parts, "new", 99)
    whole = _meta(*rows)
    assert joined.partition_stats == whole.partition_stats
    assert (joined.file_name, joined.file_size) == ("new", 99)
    assert (joined.num_added_files, joined.schema_id) == (5, 2)


def test_a_bound_that_one_manifest_does_not_know_is_not_known_of_all() -> None:
    nothing = serialize_row(TYPES, (None, None))
    foreign = _meta((7, "x"), stats=SimpleStats(nothing, nothing, (0, None)), bucket=None)
    joined = joined_meta(TYPES, [_meta((1, "a"), bucket=5), foreign], "new", 1)
    assert _bounds(joined.partition_stats) == ((None, None), (None, None))
    assert joined.partition_stats.null_counts == (0, None)
    assert (joined.min_bucket, joined.max_bucket) == (None, None)


@pytest.mark.parametrize("buckets", [(3, 1), (0, 8)])
def test_buckets_span_those_of_all(buckets: tuple[int, int]) -> None:
    joined = joined_meta(TYPES, [_meta((1, "a"), bucket=b) for b in buckets], "new", 1)
    assert (joined.min_bucket, joined.max_bucket) == (min(buckets), max(buckets))


def test_a_table_without_partitions_has_no_bounds() -> None:
    stats = partition_bounds((), [b""])
    meta = _meta((1, "a"), stats=stats)
    assert joined_meta((), [meta, meta], "new", 1).partition_stats == stats

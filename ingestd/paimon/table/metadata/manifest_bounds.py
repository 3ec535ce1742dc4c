"""What a manifest list says about manifests, so that readers can skip some.

Bounds that are not known stay unknown: a bound that is too narrow would hide files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/
"""

from collections.abc import Iterable, Sequence

from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import ManifestFileMeta

# Their minimum and maximum say nothing that a reader could prune by, so they stay unknown.
_NO_BOUNDS = frozenset({"BINARY", "VARBINARY", "BYTES", "FLOAT", "DOUBLE"})


def partition_stats(types: Sequence[DataType], partitions: Iterable[bytes]) -> SimpleStats:
    """Full (never truncated) bounds and null counts of serialized partition rows."""
    if not types:
        return EMPTY_STATS
    counts: dict[bytes, int] = {}
    for partition in partitions:
        counts[partition] = counts.get(partition, 0) + 1
    rows = [(deserialize_row(types, partition), count) for partition, count in counts.items()]
    minima: list[object] = []
    maxima: list[object] = []
    nulls: list[int | None] = []
    for column, data_type in enumerate(types):
        low, high = _bounds([row[column] for row, _ in rows], data_type)
        minima.append(low)
        maxima.append(high)
        nulls.append(sum(count for row, count in rows if row[column] is None))
    return SimpleStats(serialize_row(types, minima), serialize_row(types, maxima), tuple(nulls))


def joined_meta(
    types: Sequence[DataType], metas: Sequence[ManifestFileMeta], name: str, size: int
) -> ManifestFileMeta:
    """What to say of one manifest that holds the entries of several; `types` of the partition."""
    return ManifestFileMeta(
        file_name=name,
        file_size=size,
        num_added_files=sum(meta.num_added_files for meta in metas),
        num_deleted_files=sum(meta.num_deleted_files for meta in metas),
        partition_stats=_joined_stats(types, metas),
        schema_id=max(meta.schema_id for meta in metas),
        min_bucket=_least([meta.min_bucket for meta in metas]),
        max_bucket=_largest([meta.max_bucket for meta in metas]),
        min_level=_least([meta.min_level for meta in metas]),
        max_level=_largest([meta.max_level for meta in metas]),
        min_row_id=_least([meta.min_row_id for meta in metas]),
        max_row_id=_largest([meta.max_row_id for meta in metas]),
    )


def _joined_stats(types: Sequence[DataType], metas: Sequence[ManifestFileMeta]) -> SimpleStats:
    if not types:
        return EMPTY_STATS
    stats = [meta.partition_stats for meta in metas]
    entries = [meta.num_added_files + meta.num_deleted_files for meta in metas]
    lows = [deserialize_row(types, one.min_values) for one in stats]
    highs = [deserialize_row(types, one.max_values) for one in stats]
    minima: list[object] = []
    maxima: list[object] = []
    nulls: list[int | None] = []
    for column, data_type in enumerate(types):
        counts = [one.null_counts[column] for one in stats]
        low, high = [row[column] for row in lows], [row[column] for row in highs]
        # Without bounds, but not without values: the bounds of the others don't speak for them.
        bounds = zip(low, high, counts, entries, strict=True)
        unknown = any(None in (least, most) and n != all_ for least, most, n, all_ in bounds)
        minima.append(None if unknown else _bounds(low, data_type)[0])
        maxima.append(None if unknown else _bounds(high, data_type)[1])
        known = [count for count in counts if count is not None]
        nulls.append(sum(known) if len(known) == len(counts) else None)
    return SimpleStats(serialize_row(types, minima), serialize_row(types, maxima), tuple(nulls))


def _bounds(values: Iterable[object], data_type: DataType) -> tuple[object, object]:
    known = [value for value in values if value is not None]
    if not known or data_type.root in _NO_BOUNDS:
        return None, None
    return min(known), max(known)  # type: ignore[type-var]  # one column, one comparable type


def _least(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _largest(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None

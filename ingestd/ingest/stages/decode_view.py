"""The part of a batch context that the output of stage 1 depends on.

Stage 1 is a function of the ranges that it reads and of this view. Fields that only the write stage
needs are removed, and so are covered offsets outside the ranges, so that two views are equal
exactly if stage 1 has the same output for both. This decides whether a prefetched stage 1 can be
used for its batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ingestd.ingest.settings.context import BatchContext, Coverage, TableContext
from ingestd.kafka.ranges import OffsetRange, SourcePartition, starts_of
from ingestd.paimon.table.metadata.index_entries import IndexEntries

_NO_INDEX = IndexEntries()


def decode_view(context: BatchContext, ranges: Iterable[OffsetRange]) -> BatchContext:
    """Return the context for the decode tasks of a batch that reads `ranges`.

    Tables have no index entries, sequence numbers and snapshots, and only covered offsets within
    the ranges.
    """
    starts = starts_of(ranges)
    tables = {name: _table_view(table, starts) for name, table in context.tables.items()}
    return replace(context, tables=tables, write_buffer_size=0, index_cache_bytes=0)


def _table_view(table: TableContext, starts: Mapping[SourcePartition, int]) -> TableContext:
    return replace(
        table,
        index_entries=_NO_INDEX,
        sequence_base=0,
        position_reached=-1,
        snapshot_id=None,
        covered=_held_of(table.covered, starts),
    )


def _held_of(covered: Coverage, starts: Mapping[SourcePartition, int]) -> Coverage:
    """Return the covered offsets within ranges that start at `starts`."""
    held: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic, partition), start in starts.items():
        until = covered.get(source, {}).get(topic, {}).get(partition, 0)
        if until > start:
            held.setdefault(source, {}).setdefault(topic, {})[partition] = until
    return held

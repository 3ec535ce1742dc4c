"""The part of a batch context on which the output of stage 1 depends.

Stage 1 is a function of the offset ranges that it reads and of this view. Fields that only the
write stage needs, and covered offsets outside the ranges, are removed, so that stage 1 has the same
output if two views are equal. The result of a prefetched stage 1 is used only if its view equals
the view of the batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ingestd.ingest.settings.context import BatchContext, CoveredOffsets, TableContext
from ingestd.ingest.values.source_points import NO_POINT
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition, starts_of
from ingestd.paimon.table.metadata.index_entries import IndexEntries

_NO_INDEX = IndexEntries()


def decode_view(context: BatchContext, ranges: Iterable[OffsetRange]) -> BatchContext:
    """Return the context for the decode tasks of a batch that reads `ranges`.

    Its tables have no index entries, sequence numbers and snapshots. Of the covered offsets, only
    those after the start of a range remain. The buffer and cache sizes of the write stage are 0.
    """
    starts = starts_of(ranges)
    tables = {name: _table_view(table, starts) for name, table in context.tables.items()}
    return replace(context, tables=tables, write_buffer_size=0, index_cache_bytes=0)


def _table_view(table: TableContext, starts: Mapping[SourcePartition, int]) -> TableContext:
    return replace(
        table,
        index_entries=_NO_INDEX,
        sequence_base=0,
        reached=NO_POINT,
        snapshot_id=None,
        covered=_held_of(table.covered, starts),
    )


def _held_of(covered: CoveredOffsets, starts: Mapping[SourcePartition, int]) -> CoveredOffsets:
    """Return the covered offsets that are after the start of a range of their topic partition."""
    held: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic, partition), start in starts.items():
        until = covered.get(source, {}).get(topic, {}).get(partition, 0)
        if until > start:
            held.setdefault(source, {}).setdefault(topic, {})[partition] = until
    return held

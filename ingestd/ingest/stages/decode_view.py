"""What stage 1 of a batch knows of its context: all that its output depends on, and nothing else.

Stage 1 is a function of the ranges that it reads and of this. What only the write stage needs is
left out, as is what tables hold of other offsets, so that two views are equal exactly if stage 1
would do the same with both; that is how a stage 1 that ran early is found to be that of its batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ingestd.ingest.settings.context import BatchContext, Coverage, TableContext
from ingestd.kafka.ranges import OffsetRange, Place, starts_of
from ingestd.paimon.table.metadata.index_entries import IndexEntries

_NO_INDEX = IndexEntries()


def decode_view(context: BatchContext, ranges: Iterable[OffsetRange]) -> BatchContext:
    """The context of a batch that reads `ranges`, as its decode tasks get it.

    Tables are without index entries, sequence numbers and snapshots, and hold of the stream what
    lies within the ranges.
    """
    starts = starts_of(ranges)
    tables = {name: _table_view(one, starts) for name, one in context.tables.items()}
    return replace(context, tables=tables, write_buffer_size=0, index_cache_bytes=0)


def _table_view(one: TableContext, starts: Mapping[Place, int]) -> TableContext:
    return replace(
        one,
        index_entries=_NO_INDEX,
        sequence_base=0,
        position_reached=-1,
        snapshot_id=None,
        covered=_held_of(one.covered, starts),
    )


def _held_of(covered: Coverage, starts: Mapping[Place, int]) -> Coverage:
    """What of the ranges that begin at `starts` is held; up to the start itself is nothing."""
    held: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic, partition), start in starts.items():
        until = covered.get(source, {}).get(topic, {}).get(partition, 0)
        if until > start:
            held.setdefault(source, {}).setdefault(topic, {})[partition] = until
    return held

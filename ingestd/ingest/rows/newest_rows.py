"""Which rows of a topic partition the tables that keep the newest row of a key have a use for.

What a later row of the same key takes the place of anyway need not be handed on, numbered, sorted
and merged. Only where nothing but the newest row can count: no older one is told, looked at or
chosen instead.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.ingest.rows.blobs import HASH, KIND, POSITION, UNAVAILABLE_PREFIX
from ingestd.ingest.values.row_groups import Values
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.changelog_write import writes_input

Places = npt.NDArray[np.int64]


def keeps_newest(table: FileStoreTable) -> bool:
    """Whether the newest row of a key, as rows come, is all that a batch changes in a table.

    It is not where other columns say what is newer, kinds decide which rows count, rows are kept
    as they came, or a key leaves rows in several partitions behind.
    """
    rules = table.merge_rules
    return (
        bool(table.schema.primary_keys)
        and rules.engine == "deduplicate"
        and not (rules.sequence_fields or rules.rowkind_field)
        and not (rules.ignore_delete or rules.ignore_update_before)
        and not writes_input(table)
        and bucket_mode(table.schema) in (BucketMode.HASH_FIXED, BucketMode.HASH_DYNAMIC)
    )


def can_be_left_out(rows: pa.Table) -> bool:
    """Whether rows are whole, so that older ones of their keys are not asked for cells."""
    if any(name.startswith(UNAVAILABLE_PREFIX) for name in rows.column_names):
        return False
    return not bool((rows.column(KIND).to_numpy() == RowKind.UPDATE_BEFORE).any())


def newest_rows(table: FileStoreTable, rows: pa.Table) -> Places:
    """Ascending places of the rows that no later one of the same key follows.

    Keys of equal hash that are not surely equal both stay.
    """
    hashes = rows.column(HASH).to_numpy() if HASH in rows.column_names else key_hashes(table, rows)
    packed = (hashes.astype(np.int64) << 32) | np.arange(len(hashes))
    packed.sort()
    twins = np.flatnonzero((packed[1:] >> 32) == (packed[:-1] >> 32))
    earlier, later = packed[twins] & 0xFFFFFFFF, packed[twins + 1] & 0xFFFFFFFF
    same = np.ones(len(twins), np.bool_)
    for name in table.schema.primary_keys if len(twins) else ():
        same &= _equal(rows.column(name), earlier, later)
    stays = np.ones(len(hashes), np.bool_)
    stays[earlier[same]] = False
    return np.flatnonzero(stays)


def with_reached_positions(rows: pa.Table, slots: npt.NDArray[np.int64]) -> pa.Table:
    """The rows of a topic partition, each with the furthest position up to it in its slot.

    It is what orders rows of several partitions, and rows that are left out have their part in it.
    """
    if POSITION not in rows.column_names:
        return rows
    reached = rows.column(POSITION).to_numpy().copy()
    if not bool((reached[1:] < reached[:-1]).any()):
        return rows
    for slot in np.unique(slots):
        mine = np.flatnonzero(slots == slot)
        reached[mine] = np.maximum.accumulate(reached[mine])
    at = rows.column_names.index(POSITION)
    return rows.set_column(at, POSITION, pa.array(reached))


def _equal(column: Values, one: Places, other: Places) -> npt.NDArray[np.bool_]:
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy()
        same: npt.NDArray[np.bool_] = numbers[one] == numbers[other]
        return same
    equal: Values = pc.equal(column.take(pa.array(one)), column.take(pa.array(other)))
    return np.asarray(pc.fill_null(equal, False))

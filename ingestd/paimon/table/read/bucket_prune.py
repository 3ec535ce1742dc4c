"""Which fixed buckets may hold wanted rows: those of the bucket keys that a predicate fixes.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.bucket import takes_bucket_keys
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.predicate import Comparison, IsIn, Predicate, Value, conjuncts
from ingestd.paimon.table.buckets.assigner import assign_among
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_MAX_KEYS = 1000
"""More combinations of bucket key values than this are not worth their hashes."""
_FIXED_MODES = frozenset({BucketMode.HASH_FIXED, BucketMode.POSTPONE})
"""Modes in which a file of n buckets holds the keys whose hash says so."""


@dataclass(slots=True)
class BucketPruner:
    """Knows the buckets of some bucket keys, for each number of buckets that files had."""

    table: FileStoreTable
    keys: pa.Table
    _known: dict[int, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: FileStoreTable, predicate: Predicate | None) -> "BucketPruner | None":
        """The pruner of a predicate that allows only some values of all bucket keys, or None."""
        if bucket_mode(table.schema) not in _FIXED_MODES:
            return None
        names = table.options.bucket_keys
        types = [table.schema.field(name).type for name in names]
        if not takes_bucket_keys(table.options.bucket_function, types):
            return None
        columns = [_allowed(predicate, name) for name in names]
        known = [values for values in columns if values is not None]
        if len(known) < len(names) or not known:
            return None
        rows = list(itertools.islice(itertools.product(*known), _MAX_KEYS + 1))
        if len(rows) > _MAX_KEYS:
            return None
        fields = table.schema.select(names)
        arrays = {
            one.name: column_of([row[i] for row in rows], one.type) for i, one in enumerate(fields)
        }
        return cls(table, pa.table(arrays))

    def may_hold(self, entry: ManifestEntry) -> bool:
        """Whether a file may hold rows with one of the keys."""
        total = entry.total_buckets
        if total <= 0:
            return True
        if total not in self._known:
            buckets = assign_among(self.table, self.keys, total)
            self._known[total] = frozenset(buckets.tolist())
        return entry.bucket in self._known[total]


def _allowed(predicate: Predicate | None, column: str) -> Sequence[Value] | None:
    """The values that a predicate allows in a column; None if it does not fix them."""
    for part in conjuncts(predicate):
        values: Sequence[Value] = ()
        if isinstance(part, Comparison) and part.operator == "=":
            values = (part.value,)
        elif isinstance(part, IsIn):
            values = part.values
        if values and part.column == column and not any(isinstance(v, float) for v in values):  # type: ignore[union-attr]  # only leaves give values
            return values
    return None

"""Assign new keys to dynamic buckets: the first bucket with free capacity, or else a new one.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#dynamic-bucket
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ingestd.errors import UnsupportedError
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

MAX_BUCKETS = 32767
"""Maximum number of dynamic buckets of a partition if the table does not set one."""

Buckets = npt.NDArray[np.int32]
_Unsigned = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


class OwnedBuckets:
    """The buckets of one partition that an assigner owns, with the key count of each.

    An assigner owns the buckets whose number modulo the number of assigners equals its id. `counts`
    has the key counts of all existing buckets of the partition.
    """

    def __init__(
        self, table: FileStoreTable, counts: Mapping[int, int], assigner_id: int, assigners: int
    ) -> None:
        self._table = table
        self._id, self._assigners = assigner_id % assigners, assigners
        own = {bucket: n for bucket, n in counts.items() if bucket % assigners == self._id}
        self._counts = dict(sorted(own.items()))

    def assign(self, keys: _Unsigned) -> Buckets:
        """Assign a bucket to each new key; shape (keys,).

        If all buckets are full and `dynamic-bucket.max-buckets` allows no more, the keys are spread
        over the full buckets by their values. Raises UnsupportedError if all buckets are full and
        `MAX_BUCKETS` is reached without this option, or if the option leaves the assigner no
        bucket.
        """
        assigned = np.empty(len(keys), np.int32)
        done = 0
        for bucket in self._candidates():
            if done == len(keys):
                break
            room = self._table.options.dynamic_bucket_target_row_num - self._counts.get(bucket, 0)
            taken = len(keys[done : done + room])
            assigned[done : done + taken] = bucket
            self._gain(bucket, taken)
            done += taken
        if done < len(keys):
            assigned[done:] = self._spread(keys[done:])
        return assigned

    def _candidates(self) -> Iterator[int]:
        """Yield own buckets with free capacity, then numbers of new buckets up to the limit."""
        target = self._table.options.dynamic_bucket_target_row_num
        yield from [bucket for bucket, count in self._counts.items() if count < target]
        limit = self._limit()
        for bucket in range(self._id, limit, self._assigners):
            if self._counts and max(self._counts) >= limit - 1:
                return
            if bucket not in self._counts:
                yield bucket

    def _limit(self) -> int:
        configured = self._table.options.dynamic_bucket_max_buckets
        return MAX_BUCKETS if configured == -1 else configured

    def _gain(self, bucket: int, keys: int) -> None:
        if keys:
            self._counts[bucket] = self._counts.get(bucket, 0) + keys

    def _spread(self, keys: _Unsigned) -> Buckets:
        """Return a full bucket for each key, by the key modulo the number of buckets."""
        options = self._table.options
        own = np.array(sorted(self._counts), np.int32)
        if options.dynamic_bucket_max_buckets == -1 or not len(own):
            raise UnsupportedError(
                f"table {self._table.name}: no dynamic bucket is left for new keys; raise "
                "'dynamic-bucket.target-row-num', or 'dynamic-bucket.max-buckets' to at least "
                f"the number of assigners ({self._assigners})"
            )
        assigned = own[keys % len(own)]
        for bucket in own.tolist():
            self._gain(bucket, int(np.count_nonzero(assigned == bucket)))
        return assigned

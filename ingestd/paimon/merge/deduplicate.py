"""The merge engine that keeps the newest row of a key, whatever its kind."""

from collections.abc import Sequence

import pyarrow as pa

from ingestd.paimon.merge.base import SortedKeys, sort_keys


def merge(rows: pa.Table, key_columns: Sequence[str], keys: SortedKeys | None = None) -> pa.Table:
    """The newest row of each key, ordered by key."""
    keys = sort_keys(rows, key_columns) if keys is None else keys
    return rows.take(keys.order[keys.last])

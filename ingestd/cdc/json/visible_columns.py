"""Adjust the columns of a batch: drop hidden fields, widen lengths to the values."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.json.normalized_events import TableNormalizer
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import DataType


def strip_hidden(batch: ChangeBatch, normalizer: TableNormalizer) -> ChangeBatch:
    """Return a batch without hidden fields, whose types are long enough for its values.

    Events that are not rewritten keep the types that they state.
    """
    if normalizer.is_normalized:
        return batch
    hidden = [name for name in batch.types if name in normalizer.hidden]
    types: dict[str, DataType] = {
        name: _long_enough(batch, name, data_type)
        for name, data_type in batch.types.items()
        if name not in normalizer.hidden
    }
    if not hidden and types == dict(batch.types):
        return batch
    return replace(
        batch,
        columns=batch.columns.drop_columns(hidden),
        types=types,
        unavailable={
            n: marks for n, marks in batch.unavailable.items() if n not in normalizer.hidden
        },
    )


def _long_enough(batch: ChangeBatch, name: str, data_type: DataType) -> DataType:
    if data_type.length is None or data_type.root not in _LENGTHS:
        return data_type
    measure, root = _LENGTHS[data_type.root]
    longest = pc.max(measure(batch.columns.column(name))).as_py() or 0
    return data_type if longest <= data_type.length else DataType(root, length=longest)


_characters: Callable[..., Column] = pc.utf8_length
_bytes: Callable[..., Column] = pc.binary_length
_LENGTHS: Mapping[str, tuple[Callable[[Column], Column], str]] = {
    "CHAR": (_characters, "VARCHAR"),
    "VARCHAR": (_characters, "VARCHAR"),
    "BINARY": (_bytes, "VARBINARY"),
    "VARBINARY": (_bytes, "VARBINARY"),
}

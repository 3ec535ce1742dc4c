"""Telling two decoders of one format apart by what they make of the same records."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ingestd.cdc.base import (
    ChangeBatch,
    DataFormat,
    Decoded,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    RejectedRecord,
    load_data_format,
)
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array, Column

Facts = Mapping[str, object]


def in_python(decoder: DataFormat) -> JsonChanges:
    """A JSON decoder without the native extension, in place of the one with it."""
    assert isinstance(decoder, JsonChanges)
    return JsonChanges(decoder.name, decoder._dialect, decoder._settings, None, decoder._native)


def both_decoders(
    name: str = "debezium-json", *, images: bool = False
) -> tuple[JsonChanges, JsonChanges]:
    """A decoder with the native extension and one without; `images`: with rows before changes."""
    settings = FormatSettings(images=images, presence=True)
    native = load_data_format(name, settings)
    assert isinstance(native, JsonChanges)
    return native, in_python(load_data_format(name, settings))


def outcome(
    decoder: DataFormat,
    chunks: Sequence[RecordChunk],
    known: KnownColumns | None = None,
    declared: KnownColumns | None = None,
) -> list[Facts]:
    """All that a decoder makes of chunks, one after the other, in comparable values."""
    found: list[Facts] = []
    for chunk in chunks:
        try:
            found.append(facts(decoder.decode(chunk, known or {}, declared or {})))
        except UnsupportedError as error:
            found.append({"refused": str(error)})
    return found


def facts(decoded: Decoded) -> Facts:
    """All that a decoder made of a chunk, in comparable values."""
    return {
        "batches": [_batch_facts(batch) for batch in decoded.batches],
        "rejected": [_unplaced(rejected_record) for rejected_record in decoded.rejected],
        "truncates": decoded.truncates,
        "control": decoded.control,
        "schema_changes": decoded.schema_changes,
    }


def _unplaced(rejected: RejectedRecord) -> RejectedRecord:
    """Without the byte, which counts from the payload on if the wrapper was met before."""
    return replace(rejected, message=re.sub(r"\(byte \d+\)", "(byte)", rejected.message))


def _batch_facts(batch: ChangeBatch) -> Facts:
    batch.columns.validate(full=True)
    return {
        "source": batch.source,
        "arrow": str(batch.columns.schema),
        "columns": {name: _cells(_whole(batch.columns[name])) for name in batch.types},
        "types": list(batch.types.items()),
        "keys": batch.primary_keys,
        "kinds": (batch.row_kind.dtype, batch.row_kind.tolist()),
        "offsets": (batch.offset.dtype, batch.offset.tolist()),
        "positions": (batch.position.dtype, batch.position.tolist()),
        "snapshot": (batch.snapshot_row.dtype, batch.snapshot_row.tolist()),
        "unavailable": {name: marks.tolist() for name, marks in batch.unavailable.items()},
        "lacking": {n: marks.tolist() for n, marks in batch.lacking.items() if marks.any()},
        "writeable": batch.row_kind.flags.writeable,
    }


def _whole(column: Column) -> Array:
    found: Array = (
        pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    )
    return found


def _cells(array: Array) -> object:
    """Values that differ if the cells do; Python has no dates for some of them."""
    if isinstance(array, pa.MapArray):
        return _nested(array, (array.keys, array.items))
    if isinstance(array, pa.ListArray):
        return _nested(array, (array.values,))
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    # Texts, because NaN is not NaN and 0.0 is -0.0.
    return [repr(value) for value in array.to_pylist()]


def _nested(array: Any, inner: tuple[Array, ...]) -> object:
    return array.is_valid().to_pylist(), array.offsets.to_pylist(), [_cells(one) for one in inner]

"""Source positions of changes in Avro, computed from columns by the rules of `source_position`."""

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.source_position import (
    SourcePosition,
    file_number,
    is_snapshot,
    packed_positions,
    positions,
)
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Mask

Fields = Mapping[str, Array]
"""The fields of `source` in a schema, by name."""
POSITION_FIELDS: tuple[str, ...] = SourcePosition.__struct_fields__
_LOG_FILE = frozenset({"file", "pos", "row"})
_MARKS = frozenset({"snapshot"})


def source_positions(fields: Fields, rows: int) -> npt.NDArray[np.int64]:
    """Return the position of each change, or `UNKNOWN_POSITION` if it has none; shape (n,)."""
    present = {name: array for name, array in fields.items() if array.null_count < len(array)}
    stated = present.keys() - _MARKS
    if stated == {"lsn"} and _all_integers(present["lsn"]) and pc.min(present["lsn"]).as_py() >= 0:
        lsn: npt.NDArray[np.int64] = present["lsn"].cast(pa.int64()).to_numpy()
        return lsn
    if stated == _LOG_FILE and all(_all_integers(present[name]) for name in ("pos", "row")):
        files = _by_value(present["file"], lambda name: file_number(str(name)))
        pos, row = (present[name].cast(pa.int64()).to_numpy() for name in ("pos", "row"))
        return packed_positions(files.astype(np.int64), pos, row)
    return _one_by_one(present, rows)


def source_snapshots(fields: Fields, rows: int) -> Mask:
    """Return a mask of changes that are snapshot rows; shape (n,)."""
    marks = fields.get("snapshot")
    if marks is None:
        return np.zeros(rows, np.bool_)
    return _by_value(marks, is_snapshot).astype(np.bool_)


def _all_integers(array: Array) -> bool:
    return pa.types.is_integer(array.type) and not array.null_count


def _by_value(array: Array, function: Callable[..., object]) -> npt.NDArray[np.object_]:
    """Return the result of `function` for each value, calling it once per distinct value."""
    encoded = array.dictionary_encode(null_encoding="encode")
    results = np.array([function(value) for value in encoded.dictionary.to_pylist()], np.object_)
    results_by_row: npt.NDArray[np.object_] = results[
        encoded.indices.to_numpy(zero_copy_only=False)
    ]
    return results_by_row


def _one_by_one(present: Fields, rows: int) -> npt.NDArray[np.int64]:
    names = [name for name in POSITION_FIELDS if name in present]
    if not names:
        return np.full(rows, UNKNOWN_POSITION, np.int64)
    cells = zip(*(present[name].to_pylist() for name in names), strict=True)
    sources = []
    for values in cells:
        given = dict(zip(names, values, strict=True))
        try:
            sources.append(msgspec.convert(given, SourcePosition))
        except msgspec.ValidationError:
            sources.append(SourcePosition(snapshot=given.get("snapshot")))
    return positions(sources)

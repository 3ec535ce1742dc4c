"""Read Avro messages with the same writer schema into Arrow arrays, one for each field.

The type of an array is determined only by the physical type; `cdc.avro.record_columns` derives the
meaning of values from the schema. Messages are read by the native extension if it is installed. If
a requested field contains a union other than of null and one type, which becomes JSON text, they
are read in Python.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ingestd.cdc.avro.arrow_types import storage_type
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.values import BrokenValueError, MessageBytes, cells_per_item, read_value
from ingestd.cdc.base import lengths
from ingestd.cdc.cell_budget import CELLS_PER_BYTE, LEAST_CELLS, CellBudget, CellBudgetError
from ingestd.cdc.columns.arrow_calls import to_array
from ingestd.cdc.native_module import NativeAvro, native_module, to_arrow
from ingestd.cdc.record_errors import Reason, cell_budget_reason
from ingestd.errors import ConfigError
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Mask

Wanted = Mapping[str, Collection[str] | None]
"""The requested fields of a record, each with the requested fields of its value (None: all)."""
Spec = tuple[Any, ...]
_MAX_READERS = 5000
_VALID, _INVALID, _TOO_MANY_CELLS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class MessageFields:
    """Some fields of n Avro messages, as Arrow arrays.

    `arrays` has one array (n,) for each requested field. `bad` is a mask (n,) of the invalid
    messages, whose array elements are undefined. Of these, the messages in the mask `over` (n,)
    exceed their cell budget; the others do not match the schema. `sizes` are the sizes of messages
    in bytes.
    """

    arrays: dict[str, Array]
    bad: Mask
    over: Mask
    sizes: npt.NDArray[np.int64]


class AvroReader:
    """A reader of Avro messages into Arrow arrays.

    It caches the native reader of each schema, so one reader should be used for many chunks.
    """

    def __init__(self) -> None:
        self._native: dict[tuple[AvroNode, object], NativeAvro | None] = {}

    def read(
        self, messages: Sequence[bytes], skip: int, record: AvroNode, wanted: Wanted | None = None
    ) -> MessageFields:
        """Read fields of messages into arrays, one for each field in `wanted` (None: all fields).

        `wanted` maps a field to the fields of its record value that are read (None: all). `record`
        is the writer schema; `skip` bytes precede each encoded record. A message must match the
        whole schema, regardless of the requested fields. Raises ConfigError if the messages are too
        large to be read together.
        """
        if wanted is None:
            wanted = dict.fromkeys(record.names)
        native = self._native_reader(record, wanted)
        sizes = lengths(messages)
        if native is None:
            arrays, failures = _read_in_python(messages, skip, record, wanted)
        else:
            result = native.read(messages, skip, LEAST_CELLS, CELLS_PER_BYTE)
            if result is None:
                raise ConfigError(
                    "the Avro messages of a chunk have 2 GiB or more in one column; lower "
                    "processing.max-chunk-bytes"
                )
            failures = np.frombuffer(result[1], np.uint8)
            names = [name for name in record.names if name in wanted]
            types = [storage_type(_child(record, name), wanted[name]) for name in names]
            children = zip(names, types, result[0].children, strict=True)
            arrays = {name: to_arrow(child, data_type) for name, data_type, child in children}
        return MessageFields(arrays, failures != _VALID, failures == _TOO_MANY_CELLS, sizes)

    def _native_reader(self, record: AvroNode, wanted: Wanted) -> NativeAvro | None:
        module = native_module()
        if module is None:
            return None
        fields = {name: None if inner is None else (*inner,) for name, inner in wanted.items()}
        key = (record, tuple(fields.items()))
        if key not in self._native:
            if len(self._native) >= _MAX_READERS:
                self._native.clear()
            requested = any(_has_union(record, name, wanted) for name in record.names)
            self._native[key] = None if requested else module.AvroReader(_record(record, wanted))
        return self._native[key]


def _child(record: AvroNode, name: str) -> AvroNode:
    return record.children[record.names.index(name)]


def _has_union(record: AvroNode, name: str, wanted: Wanted) -> bool:
    """Return whether a field is requested and contains a union other than of null and one type."""
    if name not in wanted:
        return False
    node, fields = _child(record, name), wanted[name]
    if fields is None or node.present.kind != "record":
        return _contains_union(node)
    inner = node.present
    return any(_contains_union(_child(inner, field)) for field in fields if field in inner.names)


def _contains_union(node: AvroNode) -> bool:
    return node.kind == "union" or any(map(_contains_union, node.children))


def _record(node: AvroNode, wanted: Wanted) -> Spec:
    fields = zip(node.names, node.children, strict=True)
    return (
        "record",
        [(name in wanted, _spec(child, wanted.get(name))) for name, child in fields],
    )


def _spec(node: AvroNode, wanted: Collection[str] | None = None) -> Spec:
    """Return the specification of a node for the native reader; `wanted` are fields of a record."""
    match node.kind:
        case "fixed":
            return ("fixed", node.size)
        case "enum":
            return ("enum", list(node.names))
        case "nullable":
            return ("nullable", node.null_at, _spec(node.present, wanted))
        case "union":
            return ("union", [_spec(child) for child in node.children])
        case "record":
            return _record(node, dict.fromkeys(node.names if wanted is None else wanted))
        case "array":
            return ("items", cells_per_item(node), node.item.has_no_bytes, _spec(node.item))
        case "map":
            entry = ("record", [(True, ("string",)), (True, _spec(node.item))])
            return ("items", cells_per_item(node), False, entry)
        case primitive:
            return (primitive,)


def _read_in_python(
    messages: Sequence[bytes], skip: int, record: AvroNode, wanted: Wanted
) -> tuple[dict[str, Array], npt.NDArray[np.uint8]]:
    """Return an array for each requested field, and a code for each message.

    A code is `_VALID`, `_INVALID` or `_TOO_MANY_CELLS`.
    """
    failures = np.full(len(messages), _VALID, np.uint8)
    rows: list[Mapping[str, Any]] = []
    for index, message in enumerate(messages):
        data = MessageBytes(message, CellBudget(len(message)))
        try:
            row, at = read_value(data, min(skip, len(message)), record)
            if at != len(message):
                raise BrokenValueError("bytes follow the record")
        except BrokenValueError:
            row, failures[index] = {}, _INVALID
        except CellBudgetError:
            row, failures[index] = {}, _TOO_MANY_CELLS
        rows.append(row)
    arrays = {
        name: to_array(
            [row.get(name) for row in rows], storage_type(_child(record, name), wanted[name])
        )
        for name in record.names
        if name in wanted
    }
    return arrays, failures


def rejections(fields: MessageFields, stage: str) -> dict[int, Reason]:
    """Return the rejection reason of each invalid message in `fields`, by its index.

    `stage` is the stage that failed, such as "decode".
    """
    document = "the message key" if stage == "key" else "the message value"
    broken = Reason(stage, "invalid-avro", f"{document} does not match its Avro schema")
    reasons = dict.fromkeys(np.flatnonzero(fields.bad).tolist(), broken)
    for index in np.flatnonzero(fields.over).tolist():
        reasons[index] = cell_budget_reason(
            CellBudgetError(int(fields.sizes[index])), stage, document
        )
    return reasons

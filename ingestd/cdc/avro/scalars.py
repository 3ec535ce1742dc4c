"""Read scalar Avro values of many messages together."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from ingestd.cdc.avro.cursor import AvroCursor, Ints
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.columns.arrow_calls import nulls, take_rows, to_array
from ingestd.paimon.spec.arrow import Array

Read = Callable[[AvroCursor, AvroNode, Ints], Array]
"""A function that reads the values of a node in the given rows."""


def _null(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return nulls(len(rows), pa.null())


def _boolean(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    values = cursor.fixed(rows, 1)[:, 0]
    cursor.mark(rows[values > 1])
    return to_array(values != 0)


def _int(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    values = cursor.varints(rows)
    narrow = values.astype(np.int32)
    cursor.mark(rows[narrow != values])
    return pa.array(narrow)


def _long(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return pa.array(cursor.varints(rows))


def _float(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return to_array(cursor.fixed(rows, 4).view("<f4")[:, 0])


def _double(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return to_array(cursor.fixed(rows, 8).view("<f8")[:, 0])


def _bytes(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return cursor.binaries(rows, cursor.varints(rows))


def _string(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return cursor.texts(rows, cursor.varints(rows))


def _fixed(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return cursor.binaries(rows, node.size)


def choices(cursor: AvroCursor, node: AvroNode, rows: Ints, count: int) -> Ints:
    """Read the index of one of `count` symbols or branches from each message.

    An invalid index becomes -1, and its message becomes bad.
    """
    values = cursor.varints(rows)
    wrong = (values < 0) | (values >= count)
    if wrong.any():
        cursor.mark(rows[wrong])
        values[wrong] = -1
    return values


def _enum(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    values = choices(cursor, node, rows, len(node.names))
    return take_rows(pa.array(node.names, pa.string()), values)


SCALARS: Mapping[str, Read] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
    "fixed": _fixed,
    "enum": _enum,
}
"""The readers of scalars, by kind."""

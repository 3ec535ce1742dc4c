"""Footers of Parquet files, looked at before the library is asked for the statistics in them.

The library ends the process when a column chunk in a footer has another type than its column has
in the schema of the same footer. Footers have no checksum, so a damaged one may be like that.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/
"""

from typing import Any

import pyarrow as pa

from ingestd.paimon.format.thrift_compact import Struct, ThriftReader

_TAIL = 8
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _CHILDREN = 1, 5
_COLUMNS, _META = 1, 3


def read_footer(source: pa.NativeFile) -> Struct:
    """The footer of an open file; IndexError or ValueError if it is not one."""
    size = source.size()
    source.seek(size - _TAIL)
    length = int.from_bytes(source.read(4), "little")
    if length > size - _TAIL:
        raise ValueError("the footer is longer than the file")
    source.seek(size - _TAIL - length)
    return ThriftReader(bytes(source.read(length))).struct()


def check_chunk_types(source: pa.NativeFile) -> None:
    """ValueError if a column chunk has another type than its column."""
    footer = read_footer(source)
    types = [
        element_type
        for element in structs(member(footer, _SCHEMA))
        if (element_type := member(element, _TYPE)) != [] and not member(element, _CHILDREN)
    ]
    for group in structs(member(footer, _ROW_GROUPS)):
        chunks = structs(member(group, _COLUMNS))
        if [member(member(chunk, _META), _TYPE) for chunk in chunks] != types:
            raise ValueError("a column chunk has another type than its column")


def member(struct: Struct, number: int) -> Any:  # noqa: ANN401  # whatever the field holds
    """The value of a field, [] if the structure has no such field; ValueError if it is not one."""
    if not isinstance(struct, list):
        raise ValueError("a value in the footer is no structure")
    return next((value for field, _, value in struct if field == number), [])


def structs(value: Any) -> list[Struct]:  # noqa: ANN401  # a list as it is read
    """The elements of a list of structures; ValueError if it is not one."""
    if value == []:
        return []
    if not isinstance(value, tuple):
        raise ValueError("a value in the footer is no list")
    return list(value[1])

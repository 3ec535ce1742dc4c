"""Map MySQL column types, such as `decimal(10,2) unsigned`, to columns.

The values of such columns are strings. Columns have the same types as in Paimon's CDC actions,
unless `type_mapping` selects another type. If a message has no MySQL type, the JDBC type code is
used.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ingestd.cdc.columns.type_mapping import (
    BIGINT_UNSIGNED_TO_BIGINT,
    CHAR_TO_STRING,
    LONGTEXT_TO_BYTES,
    TINYINT1_NOT_BOOL,
    TO_STRING,
)
from ingestd.cdc.columns.wire_column import BIGINT, STRING, Meaning, WireColumn
from ingestd.paimon.spec.data_types import DataType

_TYPE = re.compile(r"\s*+([a-z]\w*+(?:\s++precision)?)\s*+(?:\((.*)\))?([^()]*)", re.DOTALL | re.I)
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*+)'?", re.DOTALL)
_ESCAPE = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL = {"0": "\0", "n": "\n", "r": "\r"}
_MAX_PRECISION = 38
_LOOSE_DECIMAL = DataType("DECIMAL", precision=38, scale=18)
_BOOLEAN, _BYTES = DataType("BOOLEAN"), DataType("BYTES")


@dataclass(frozen=True, slots=True)
class _Type:
    """A parsed MySQL type: lower-case name, text in parentheses, and whether it is unsigned."""

    base: str
    inside: str
    unsigned: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers in the parentheses, or an empty tuple if there is any other text."""
        numbers = [number.strip() for number in self.inside.split(",")]
        return tuple(int(number) for number in numbers) if all(map(_is_size, numbers)) else ()


def mysql_column(name: str, text: str, mapping: frozenset[str]) -> WireColumn:
    """Return the column `name` of the MySQL type `text`, such as `int(11) unsigned`.

    Unknown types become STRING. `mapping` contains type mapping options, such as `to-string`.
    """
    match = _TYPE.fullmatch(text)
    if match is None:
        return _column(name, STRING)
    base, inside, attributes = match[1].lower(), match[2] or "", match[3].lower()
    unsigned = "unsigned" in attributes or "zerofill" in attributes or base == "serial"
    mysql_type = _Type(base, inside, unsigned)
    column = _special(name, mysql_type) or _plain(name, mysql_type, mapping)
    if TO_STRING in mapping:
        return replace(column, data_type=STRING)
    return column


def jdbc_column(name: str, code: int) -> WireColumn:
    """Return the column `name` for a type code of java.sql.Types; STRING for an unknown code.

    A type code states no length, precision or scale.
    """
    column = _JDBC.get(code)
    return _column(name, STRING) if column is None else replace(column, name=name)


def _is_size(text: str) -> bool:
    return text.isdecimal() and len(text) < 10


def _column(name: str, data_type: DataType, *, sized: bool = True) -> WireColumn:
    return WireColumn(name, data_type, Meaning.SOURCE_TEXT, text=True, sized=sized)


def _special(name: str, mysql_type: _Type) -> WireColumn | None:
    """Return the column for a geometry, ENUM, SET or BIT type, or None for other types."""
    if mysql_type.base in _GEOMETRIES:
        return WireColumn(name, STRING, Meaning.GEOMETRY)
    if mysql_type.base in ("enum", "set"):
        labels = tuple(
            _ESCAPE.sub(_unescaped, label) for label in _LABEL.findall(mysql_type.inside)
        )
        if mysql_type.base == "enum":
            return WireColumn(name, STRING, Meaning.ENUM, labels=labels)
        data_type = DataType("ARRAY", element=STRING)
        return WireColumn(name, data_type, Meaning.LABEL_SET, labels=labels)
    if mysql_type.base == "bit":
        width = (mysql_type.sizes or (1,))[0]
        data_type = _BOOLEAN if width == 1 else DataType("BINARY", length=(width + 7) // 8)
        return WireColumn(name, data_type, Meaning.BIT_NUMBER, width=width)
    return None


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1] or "'"
    return _CONTROL.get(escaped, escaped)


def _plain(name: str, mysql_type: _Type, mapping: frozenset[str]) -> WireColumn:
    base = mysql_type.base
    if base in _TEXTS:
        if base == "longtext" and LONGTEXT_TO_BYTES in mapping:
            return WireColumn(name, _BYTES, Meaning.UTF8)
        return _column(name, STRING)
    if base in _BINARIES:
        data_type = _BYTES
        if base in ("binary", "varbinary") and mysql_type.sizes:
            data_type = DataType("VARBINARY", length=max(mysql_type.sizes[0], 1))
        return WireColumn(name, data_type, Meaning.LATIN1)
    if base in ("decimal", "numeric", "dec", "fixed"):
        return _decimal(name, mysql_type)
    make = _MAKERS.get(base)
    return _column(name, STRING if make is None else make(mysql_type, mapping))


def _decimal(name: str, mysql_type: _Type) -> WireColumn:
    sizes = mysql_type.sizes
    if not sizes:
        return _column(name, _LOOSE_DECIMAL, sized=False)
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not 1 <= precision <= _MAX_PRECISION or scale > precision:
        return _column(name, STRING)
    return _column(name, DataType("DECIMAL", precision=precision, scale=scale))


def _integer(signed: str, unsigned: str) -> "_Make":
    return lambda mysql_type, mapping: DataType(unsigned if mysql_type.unsigned else signed)


def _tinyint(mysql_type: _Type, mapping: frozenset[str]) -> DataType:
    # Only a signed tinyint(1) is MySQL's BOOLEAN.
    is_boolean = mysql_type.sizes == (1,) and not mysql_type.unsigned
    if is_boolean and TINYINT1_NOT_BOOL not in mapping:
        return _BOOLEAN
    return DataType("SMALLINT" if mysql_type.unsigned else "TINYINT")


def _bigint(mysql_type: _Type, mapping: frozenset[str]) -> DataType:
    if mysql_type.unsigned and BIGINT_UNSIGNED_TO_BIGINT not in mapping:
        return DataType("DECIMAL", precision=20, scale=0)
    return BIGINT


def _fixed(data_type: DataType) -> "_Make":
    return lambda mysql_type, mapping: data_type


def _timestamp(mysql_type: _Type, mapping: frozenset[str]) -> DataType:
    precision = (mysql_type.sizes or (0,))[0]
    return DataType("TIMESTAMP", precision=min(precision, 9))


def _time(mysql_type: _Type, mapping: frozenset[str]) -> DataType:
    return DataType("TIME", precision=min((mysql_type.sizes or (0,))[0], 9))


def _characters(mysql_type: _Type, mapping: frozenset[str]) -> DataType:
    length = (mysql_type.sizes or (0,))[0]
    if not length or CHAR_TO_STRING in mapping:
        return STRING
    return DataType("CHAR" if mysql_type.base in ("char", "nchar") else "VARCHAR", length=length)


_Make = Callable[[_Type, frozenset[str]], DataType]
_GEOMETRIES = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    }
)
_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext", "json", "long varchar"})
_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_MAKERS: Mapping[str, _Make] = {
    "bool": _fixed(_BOOLEAN),
    "boolean": _fixed(_BOOLEAN),
    "tinyint": _tinyint,
    "smallint": _integer("SMALLINT", "INT"),
    "mediumint": _integer("INT", "BIGINT"),
    "int": _integer("INT", "BIGINT"),
    "integer": _integer("INT", "BIGINT"),
    "year": _fixed(DataType("INT")),
    "bigint": _bigint,
    "serial": _bigint,
    "float": _fixed(DataType("FLOAT")),
    "real": _fixed(DataType("DOUBLE")),
    "double": _fixed(DataType("DOUBLE")),
    "double precision": _fixed(DataType("DOUBLE")),
    "date": _fixed(DataType("DATE")),
    "time": _time,
    "datetime": _timestamp,
    "timestamp": _timestamp,
    "char": _characters,
    "nchar": _characters,
    "varchar": _characters,
    "nvarchar": _characters,
}
_MICROS = DataType("TIMESTAMP", precision=6)
_JDBC: Mapping[int, WireColumn] = {
    -6: _column("", DataType("SMALLINT")),
    5: _column("", DataType("INT")),
    4: _column("", BIGINT),
    -5: _column("", DataType("DECIMAL", precision=20, scale=0)),
    7: _column("", DataType("DOUBLE")),
    6: _column("", DataType("DOUBLE")),
    8: _column("", DataType("DOUBLE")),
    2: _column("", _LOOSE_DECIMAL, sized=False),
    3: _column("", _LOOSE_DECIMAL, sized=False),
    16: _column("", _BOOLEAN),
    91: _column("", DataType("DATE")),
    92: _column("", DataType("TIME", precision=3)),
    93: _column("", _MICROS),
    -2: WireColumn("", _BYTES, Meaning.LATIN1),
    -3: WireColumn("", _BYTES, Meaning.LATIN1),
    -4: WireColumn("", _BYTES, Meaning.LATIN1),
    2004: WireColumn("", _BYTES, Meaning.LATIN1),
}
"""The columns by JDBC type code.

They are wide enough for unsigned types, which have the same codes.
"""

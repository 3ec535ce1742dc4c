"""Data types, fields and row kinds of a table, and their encoding in schema files.

Arrow types are in `arrow`, the byte layout of values in `binary_row`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from ingestd.errors import FormatError

SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
ROW_ID = "_ROW_ID"
KEY_PREFIX = "_KEY_"

KEY_FIELD_ID_START = 1073741823
"""The id of a `_KEY_` column is this number plus the id of its column."""
SEQUENCE_NUMBER_ID = 2147483646
VALUE_KIND_ID = 2147483645
ROW_ID_ID = 2147483642

SYSTEM_COLUMN_NAMES = frozenset({SEQUENCE_NUMBER, VALUE_KIND, "_LEVEL", "rowkind", ROW_ID})
"""Reserved names that no column of a table may have."""

MAX_LENGTH = 2147483647
CHARACTER_ROOTS = frozenset({"CHAR", "VARCHAR", "STRING"})
BINARY_ROOTS = frozenset({"BINARY", "VARBINARY", "BYTES"})
INTEGER_ROOTS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
TIMESTAMP_ROOTS = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"})
NESTED_ROOTS = frozenset({"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR"})
_PLAIN_ROOTS = INTEGER_ROOTS | {
    "BOOLEAN", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES", "VARIANT", "BLOB",
}  # fmt: skip
_SIZED_ROOTS = frozenset({"CHAR", "VARCHAR", "BINARY", "VARBINARY"})
_DEFAULT_PRECISION = {"DECIMAL": 10, "TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}
_UNBOUNDED = {"VARCHAR": "STRING", "VARBINARY": "BYTES"}
_SYNONYMS = {
    "INTEGER": "INT",
    "DOUBLE PRECISION": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "TIME WITHOUT TIME ZONE": "TIME",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "TIMESTAMP WITH LOCAL TIME ZONE": "TIMESTAMP_LTZ",
}
_TYPE_TEXT = re.compile(r"([A-Z_]+(?: [A-Z]+)*) ?(?:\( ?(\d+) ?(?:, ?(\d+) ?)?\))?((?: [A-Z]+)*)")


class RowKind(IntEnum):
    """The kind of a change of a row, a value of `_VALUE_KIND`."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def symbol(self) -> str:
        """The short form shown to users: +I, -U, +U or -D."""
        return ("+I", "-U", "+U", "-D")[self]


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type: `root` is its name in Paimon, the other fields are its parameters.

    `element` is the type of the elements of an ARRAY, MULTISET or VECTOR, `key` and `value` are the
    types of the keys and values of a MAP, `fields` the fields of a ROW. A missing precision, scale
    or length is set to the default of the specification. Raises ValueError for an unknown root or
    invalid parameters.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#datafield
    """

    root: str
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: "DataType | None" = None
    key: "DataType | None" = None
    value: "DataType | None" = None
    fields: "tuple[DataField, ...]" = ()

    def __post_init__(self) -> None:
        if self.root in _DEFAULT_PRECISION and self.precision is None:
            object.__setattr__(self, "precision", _DEFAULT_PRECISION[self.root])
        if self.root == "DECIMAL" and self.scale is None:
            object.__setattr__(self, "scale", 0)
        if self.root in _SIZED_ROOTS and self.length is None:
            object.__setattr__(self, "length", 1)
        if self.length == MAX_LENGTH and self.root in _UNBOUNDED:
            object.__setattr__(self, "root", _UNBOUNDED[self.root])
            object.__setattr__(self, "length", None)
        _check(self)

    def __str__(self) -> str:
        return _printed(self)

    def not_null(self) -> "DataType":
        """Return the type as NOT NULL."""
        return replace(self, nullable=False) if self.nullable else self

    def as_nullable(self) -> "DataType":
        """Return the type as nullable."""
        return self if self.nullable else replace(self, nullable=True)


@dataclass(frozen=True, slots=True)
class DataField:
    """A column, or a field of a ROW; a rename does not change its id.

    `description` is the comment, `default_value` a text that is cast to the type; None if not set.
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None


def _check(t: DataType) -> None:
    """Raise ValueError if a data type is unknown or its parameters are invalid."""
    if t.root == "DECIMAL":
        precision, scale = t.precision or 0, t.scale or 0
        sound = 1 <= precision <= 38 and 0 <= scale <= precision
    elif t.root in _DEFAULT_PRECISION:
        sound = 0 <= (t.precision or 0) <= 9
    elif t.root in _SIZED_ROOTS:
        # Java prints the type of an empty string literal as CHAR(0).
        sound = 0 <= (t.length or 0) <= MAX_LENGTH
    elif t.root == "MAP":
        sound = t.key is not None and t.value is not None
    elif t.root in NESTED_ROOTS:
        sound = t.root == "ROW" or t.element is not None
    else:
        sound = t.root in _PLAIN_ROOTS
    if not sound:
        raise ValueError(f"no such data type: {t.root} {t.precision} {t.scale} {t.length}")


def parse_type(document: str | Mapping[str, Any]) -> DataType:
    """Parse a data type of a schema file.

    `document` is a text such as "DECIMAL(10, 2) NOT NULL", or, for a nested type (ARRAY, MAP,
    MULTISET, ROW, VECTOR), a JSON object. Raises FormatError, naming the type, if it is invalid.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#datafield
    """
    try:
        if isinstance(document, str):
            return _parse_text(document)
        return _parse_object(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"data type {document!r} cannot be understood: {error}") from error


def _parse_text(text: str) -> DataType:
    normal = " ".join(text.upper().split())
    nullable = True
    if normal.endswith(" NOT NULL"):
        normal, nullable = normal[: -len(" NOT NULL")], False
    else:
        normal = normal.removesuffix(" NULL")
    match = _TYPE_TEXT.fullmatch(normal)
    if match is None:
        raise ValueError("not a type text")
    head, first, second, tail = match.groups()
    root = _SYNONYMS.get(head + tail, head + tail)
    number = None if first is None else int(first)
    if root == "DECIMAL":
        return DataType(root, nullable, number, None if second is None else int(second))
    if second is not None or (number is not None and root in _PLAIN_ROOTS):
        raise ValueError("too many numbers in parentheses")
    if root in _SIZED_ROOTS:
        return DataType(root, nullable, length=number)
    return DataType(root, nullable, precision=number)


def _parse_object(document: Mapping[str, Any]) -> DataType:
    text = " ".join(str(document["type"]).upper().split())
    nullable = not text.endswith(" NOT NULL")
    root = text.removesuffix(" NOT NULL")
    if root == "MAP":
        key, value = parse_type(document["key"]), parse_type(document["value"])
        return DataType(root, nullable, key=key, value=value)
    if root == "ROW":
        return DataType(root, nullable, fields=tuple(map(parse_field, document["fields"])))
    if root == "VECTOR":
        length, element = int(document["length"]), parse_type(document["element"])
        return DataType(root, nullable, length=length, element=element)
    return DataType(root, nullable, element=parse_type(document["element"]))


def parse_field(document: Mapping[str, Any]) -> DataField:
    """Parse a field of a schema file. Raises FormatError if an entry is missing or invalid."""
    try:
        return DataField(
            id=int(document["id"]),
            name=str(document["name"]),
            type=parse_type(document["type"]),
            description=document.get("description"),
            default_value=document.get("defaultValue"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"field {document!r} cannot be understood: {error!r}") from error


def _printed(t: DataType) -> str:
    suffix = "" if t.nullable else " NOT NULL"
    if t.root == "DECIMAL":
        return f"DECIMAL({t.precision}, {t.scale}){suffix}"
    if t.root == "TIMESTAMP_LTZ":
        return f"TIMESTAMP({t.precision}) WITH LOCAL TIME ZONE{suffix}"
    if t.precision is not None:
        return f"{t.root}({t.precision}){suffix}"
    if t.root in _SIZED_ROOTS:
        return f"{t.root}({t.length}){suffix}"
    if t.root == "MAP":
        return f"MAP<{t.key}, {t.value}>{suffix}"
    if t.root == "ROW":
        inner = ", ".join(f"`{field.name}` {field.type}" for field in t.fields)
        return f"ROW<{inner}>{suffix}"
    if t.root == "VECTOR":
        return f"VECTOR<{t.element}, {t.length}>{suffix}"
    return f"{t.root}<{t.element}>{suffix}" if t.element else t.root + suffix


def encode_type(t: DataType) -> str | dict[str, Any]:
    """Return a data type as Java writes it: as a JSON object if it is nested, else as a text.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#datafield
    """
    if t.root not in NESTED_ROOTS:
        return _printed(t)
    document: dict[str, Any] = {"type": t.root if t.nullable else t.root + " NOT NULL"}
    if t.root == "ROW":
        document["fields"] = [encode_field(field) for field in t.fields]
    elif t.key is not None and t.value is not None:
        document["key"], document["value"] = encode_type(t.key), encode_type(t.value)
    elif t.element is not None:
        document["element"] = encode_type(t.element)
    if t.root == "VECTOR":
        document["length"] = t.length
    return document


def encode_field(field: DataField) -> dict[str, Any]:
    """Return a field as a JSON object, as Java writes it."""
    document: dict[str, Any] = {
        "id": field.id, "name": field.name, "type": encode_type(field.type)
    }  # fmt: skip
    if field.description is not None:
        document["description"] = field.description
    if field.default_value is not None:
        document["defaultValue"] = field.default_value
    return document


def walk_types(t: DataType) -> Iterator[DataType]:
    """Yield a data type and all types nested in it, outermost first."""
    yield t
    for inner in (t.element, t.key, t.value, *(field.type for field in t.fields)):
        if inner is not None:
            yield from walk_types(inner)


def max_field_id(fields: tuple[DataField, ...]) -> int:
    """Return the highest id of the fields and of their nested ROW fields; -1 without fields."""
    highest = -1
    for field in fields:
        inner = (max_field_id(t.fields) for t in walk_types(field.type))
        highest = max(highest, field.id, *inner)
    return highest

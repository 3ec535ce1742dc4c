"""Kinds of JSON values, and the column types inferred from them if messages have no schema.

Kinds distinguish what matters to readers: integers by width, strings by whether they could be
numbers, arrays and objects by the kinds of their elements. The kinds of the values of a column
determine its reader, and also its type unless the type is declared or known.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ingestd.cdc.columns.wire_column import BIGINT, STRING, Meaning, WireColumn
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    DataType,
)

JsonKinds = frozenset[str]

DOUBLE = DataType("DOUBLE")
BIG_DECIMAL = DataType("DECIMAL", precision=38, scale=0)

TEXT_KINDS: JsonKinds = frozenset({"special", "numeral", "digits", "base64", "text"})
"""Kinds of strings.

`special` is NaN or an infinity, `numeral` is a quoted number, `digits` is a quoted number that
could also be base64, `base64` may be an unscaled integer in base64, and `text` is any other string.
"""
INTEGER_KINDS: JsonKinds = frozenset({"i8", "i16", "i32", "i53", "i64"})
NUMBER_KINDS: JsonKinds = INTEGER_KINDS | {"big", "huge", "float"}
"""`big` integers exceed 64 bits and have at most 38 digits; `huge` integers have more digits."""
ELEMENT, ENTRY = "[]", "{}"
"""Prefixes of kinds of array elements and of object values."""

_BITS = ((7, "i8"), (15, "i16"), (31, "i32"), (53, "i53"), (63, "i64"))
_INTEGER_TYPES: Mapping[str, DataType] = {
    "i8": DataType("TINYINT"),
    "i16": DataType("SMALLINT"),
    "i32": DataType("INT"),
    "i53": BIGINT,
    "i64": BIGINT,
    "big": BIG_DECIMAL,
    "huge": STRING,
}
_WIDTH = {kind: width for width, kind in enumerate(_INTEGER_TYPES)}
_TYPE_WIDTH = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 4}
_NUMERAL = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_BASE64 = re.compile(
    rb"(?!(?i:null|none)$)(?=.{4,24}$)([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2,3}={1,2})?"
)
"""At most the 16 bytes of a DECIMAL, and no word that stands for null."""
_DECODE_ARRAY = msgspec.json.Decoder(list[msgspec.Raw]).decode
_DECODE_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_MINORITY = 20
"""Kinds of other families are ignored if the largest family has this many times their values."""


def kinds_of(raw: bytes) -> tuple[str, ...]:
    """Return the kinds of a JSON value, such as `bool` or `text`; empty for null.

    The kinds of array elements and of object values are included, with a prefix. `raw` must be
    valid JSON without surrounding whitespace.
    """
    first = raw[:1]
    if first == b"n":
        return ()
    if first == b'"':
        return (_text_kind(raw[1:-1]),)
    if first in b"tf":
        return ("bool",)
    if first == b"[":
        return ("array", *_inner_kinds(ELEMENT, _DECODE_ARRAY(raw)))
    if first == b"{":
        return ("object", *_inner_kinds(ENTRY, _DECODE_OBJECT(raw).values()))
    if b"." in raw or b"e" in raw or b"E" in raw:
        return ("float",)
    return (_integer_kind(raw),)


def _inner_kinds(prefix: str, values: Iterable[msgspec.Raw]) -> set[str]:
    return {prefix + kind for value in values for kind in kinds_of(bytes(value))}


def _text_kind(text: bytes) -> str:
    if text in (b"NaN", b"Infinity", b"-Infinity"):
        return "special"
    if not _NUMERAL.fullmatch(text):
        plain = text.replace(rb"\/", b"/")
        return "base64" if len(plain) % 4 == 0 and _BASE64.fullmatch(plain) else "text"
    ambiguous = len(text) % 4 == 0 and b"." not in text and b"-" not in text
    return "digits" if ambiguous else "numeral"


def _integer_kind(raw: bytes) -> str:
    digits = len(raw) - raw.startswith(b"-")
    if digits > 38:
        return "huge"
    value = int(raw)
    size = (~value if value < 0 else value).bit_length()
    return next((kind for bits, kind in _BITS if size <= bits), "big")


def inner_kinds(prefix: str, kinds: JsonKinds) -> JsonKinds:
    """Return the kinds in `kinds` that begin with `prefix`, without the prefix.

    With the prefix of array elements or of object values, these are the kinds of the inner values.
    """
    size = len(prefix)
    return frozenset(kind[size:] for kind in kinds if kind.startswith(prefix))


def reader_kinds(counts: Mapping[str, int]) -> JsonKinds:
    """Return the kinds of values from which the reader of a column is chosen.

    `counts` has the number of values by kind, as from `kinds_of`. A column has either numbers or
    base64, so the kinds of the less frequent of the two are left out; base64 if they are equally
    frequent.
    """
    kinds = set(counts)
    for kind in [kind for kind in counts if kind.endswith("base64")]:
        prefix = kind.removesuffix("base64")
        numbers = {prefix + "numeral", prefix + "digits"}
        most = sum(counts.get(number, 0) for number in numbers) < counts[kind]
        kinds -= numbers if most else {kind}
    return frozenset(kinds)


def resolve_type(
    kinds: "Counter[str]", declared: DataType | None, known: DataType | None, *, is_key: bool
) -> DataType | None:
    """Return the type of a column: the declared type, else the known type, else an inferred type.

    `kinds` counts the values by kind, and `known` is the type in the table. A declared type and the
    known type of a key column are not changed; another known type is widened if numbers require it.
    Returns None if no type is known and all values are null.
    """
    if declared is not None:
        return declared
    if known is not None:
        return known if is_key else _widened(known, frozenset(kinds))
    return _inferred(_dominant(kinds))


def _widened(known: DataType, kinds: JsonKinds) -> DataType:
    if known.root not in INTEGER_ROOTS:
        return known
    numbers = kinds & NUMBER_KINDS
    if "float" in numbers:
        return STRING if numbers & {"i64", "big", "huge"} else DOUBLE
    widest = max(numbers, key=_WIDTH.__getitem__, default=None)
    if widest is None or _WIDTH[widest] <= _TYPE_WIDTH[known.root]:
        return known
    return _INTEGER_TYPES[widest]


def _dominant(kinds: "Counter[str]") -> JsonKinds:
    """Return the kinds without those that only very few values have.

    Strings are a family, numbers are a family, and every other kind is a family of its own. If the
    largest family has `_MINORITY` times the values of all others, the kinds of the others are left
    out. Kinds of array elements and of object values belong to no family, and remain.
    """
    families: Counter[str] = Counter()
    for kind, count in kinds.items():
        families[_family(kind)] += count
    del families[""]
    if len(families) < 2:
        return frozenset(kinds)
    (first, most), *rest = families.most_common()
    if sum(count for _, count in rest) * _MINORITY > most:
        return frozenset(kinds)
    return frozenset(kind for kind in kinds if _family(kind) in {first, ""})


def _family(kind: str) -> str:
    if kind[:2] in {ELEMENT, ENTRY}:
        return ""
    if kind in TEXT_KINDS:
        return "text"
    return "number" if kind in NUMBER_KINDS else kind


def _inferred(kinds: JsonKinds) -> DataType | None:
    if not kinds:
        return None
    if kinds == {"bool"}:
        return DataType("BOOLEAN")
    numbers = kinds & NUMBER_KINDS
    if not numbers or kinds - NUMBER_KINDS - {"special"}:
        return STRING
    if "float" in numbers or "special" in kinds:
        return STRING if numbers & {"i64", "big", "huge"} else DOUBLE
    widest = max(numbers, key=_WIDTH.__getitem__)
    return BIGINT if widest in INTEGER_KINDS else _INTEGER_TYPES[widest]


def default_kinds(column: WireColumn) -> JsonKinds:
    """Return the kinds of a column's values in messages of a connector with default settings."""
    meaning = _MEANING_KINDS.get(column.meaning)
    if meaning is not None:
        return meaning
    data_type = column.data_type
    for prefix, outer, inner in (
        (ELEMENT, "array", data_type.element),
        (ENTRY, "object", data_type.value),
    ):
        if inner is not None:
            element = column.element or WireColumn("element", inner)
            return frozenset({outer, *(prefix + kind for kind in default_kinds(element))})
    return _TEXT if column.text else _ROOT_KINDS.get(data_type.root, frozenset({"i32"}))


_TEXT: JsonKinds = frozenset({"text"})
_NUMERALS: JsonKinds = frozenset({"numeral"})
_MEANING_KINDS: Mapping[Meaning, JsonKinds] = {
    Meaning.UNSCALED: frozenset({"base64"}),
    Meaning.VARIABLE_DECIMAL: frozenset({"object"}),
    Meaning.BITS: _TEXT,
    Meaning.SOURCE_TEXT: _NUMERALS,
    Meaning.LATIN1: _TEXT,
    Meaning.UTF8: _TEXT,
    Meaning.BIT_NUMBER: _TEXT,
    Meaning.ENUM: _TEXT,
    Meaning.LABEL_SET: _TEXT,
    Meaning.GEOMETRY: _TEXT,
    Meaning.JSON: frozenset({"object"}),
}
_ROOT_KINDS: Mapping[str, JsonKinds] = {
    **dict.fromkeys(CHARACTER_ROOTS | BINARY_ROOTS, _TEXT),
    "DECIMAL": _NUMERALS,
    "BOOLEAN": frozenset({"bool"}),
    "FLOAT": frozenset({"float", "i32"}),
    "DOUBLE": frozenset({"float", "i32"}),
    "ROW": frozenset({"object"}),
}

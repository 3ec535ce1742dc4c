"""Test vectors of the table format, from Java Paimon (`tests/golden/*_vectors.json`)."""

import functools
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from ingestd.paimon.spec.data_types import BINARY_ROOTS, DataField, DataType, parse_type

_GOLDEN = Path(__file__).resolve().parent.parent / "golden"
_Raw = Any


@functools.cache
def vectors(key: str) -> _Raw:
    """The vectors of one kind."""
    files = sorted(_GOLDEN.glob("*_vectors.json"))
    return next(found[key] for file in files if key in (found := json.loads(file.read_text())))


def vector_type(text: str) -> DataType:
    """A type as the vectors name it: SQL text, with angle brackets for nested types."""
    match = re.fullmatch(r"(ARRAY|MAP|ROW)<(.*)>", text)
    if match is None:
        return parse_type(text)
    root, inner = match.groups()
    if root == "ARRAY":
        return DataType(root, element=vector_type(inner))
    parts = inner.split(", ")
    if root == "MAP":
        return DataType(root, key=vector_type(parts[0]), value=vector_type(parts[1]))
    named = (part.split(" ", 1) for part in parts)
    fields = (DataField(i, n.strip("`"), vector_type(t)) for i, (n, t) in enumerate(named))
    return DataType(root, fields=tuple(fields))


def vector_value(t: DataType, raw: _Raw) -> object:
    """A value of the vectors as BinaryRow takes it."""
    if raw is None:
        return None
    if t.root == "DECIMAL":
        return Decimal(raw)
    if t.root in ("FLOAT", "DOUBLE"):
        return float(raw)
    if t.root in BINARY_ROOTS:
        return bytes.fromhex(raw.removeprefix("hex:"))
    if t.root.startswith("TIMESTAMP"):
        return _timestamp(t, raw["millis"], raw["nanoOfMilli"])
    return _nested(t, raw)


def _timestamp(t: DataType, millis: int, nanos: int) -> int:
    precision = t.precision or 0
    if precision <= 3:
        return millis
    return millis * 1000 + nanos // 1000 if precision <= 6 else millis * 1_000_000 + nanos


def _nested(t: DataType, raw: _Raw) -> object:
    if t.element is not None:
        element = t.element
        return [vector_value(element, item) for item in raw]
    if t.key is not None and t.value is not None:
        keys = [vector_value(t.key, item) for item in raw["keys"]]
        values = [vector_value(t.value, item) for item in raw["values"]]
        return list(zip(keys, values, strict=True))
    if t.root == "ROW":
        return tuple(vector_value(f.type, item) for f, item in zip(t.fields, raw, strict=True))
    return raw

"""Debezium's placeholders for large values that a change did not modify.

PostgreSQL omits unchanged TOASTed values from its log. The connector sends its default placeholder
instead, in a form that matches the type of the column.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.arrow import Array

TEXT = "__debezium_unavailable_value"
BYTES = TEXT.encode()
BASE64 = base64.b64encode(BYTES).decode()
CODES = list(BYTES)
"""The placeholder in arrays of integers: one byte of the text per element."""
HSTORE = f'{{"{TEXT}":"{TEXT}"}}'
"""The placeholder of an hstore that is sent as JSON text, the connector's default."""
TEXTS = (TEXT, BASE64, HSTORE)
"""The placeholders in strings."""
UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
"""The placeholder in arrays of UUIDs: the name-based UUID (version 3) of the text."""

Find = Callable[[Sequence[Any]], list[int]]
"""Returns the indices of placeholders in the decoded values of a column."""

_LENGTHS = [len(text) for text in TEXTS]
_RAW_BASE64 = msgspec.json.encode(BASE64)
_RAW_MAP = b'{"' + BYTES + b'"'
_RAW_FORMS = frozenset(
    {
        msgspec.json.encode(form)
        for form in (*TEXTS, [TEXT], [BASE64], [UUID], CODES)
    }
)  # fmt: skip


def _find_equal(*forms: object) -> Find:
    def find(values: Sequence[Any]) -> list[int]:
        present = [form for form in forms if form in values]
        if not present:
            return []
        return [index for index, value in enumerate(values) if value in present]

    return find


def _find_entry(values: Sequence[Any]) -> list[int]:
    return [i for i, value in enumerate(values) if isinstance(value, dict) and TEXT in value]


def _is_raw_placeholder(raw: bytes) -> bool:
    return raw in _RAW_FORMS or raw.startswith(_RAW_MAP)


def _find_raw(values: Sequence[Any]) -> list[int]:
    return [
        index
        for index, value in enumerate(values)
        if isinstance(value, msgspec.Raw) and _is_raw_placeholder(bytes(value))
    ]


def find_raw_bytes(values: Sequence[Any]) -> list[int]:
    """Return the indices of the placeholders of bytes in the JSON texts of a column of bytes."""
    return [
        index
        for index, value in enumerate(values)
        if isinstance(value, msgspec.Raw) and bytes(value) == _RAW_BASE64
    ]


def may_hold_text(array: Array) -> bool:
    """Return whether an array may contain Debezium's text for an omitted value.

    True if any string has the length of such a text, or if the array is not a string array.
    """
    if not isinstance(array, pa.StringArray):
        return True
    buffer = array.buffers()[1]
    offsets = np.frombuffer(memoryview(buffer or b""), np.int32)[array.offset :][: len(array) + 1]
    lengths = np.diff(offsets)
    return bool(np.isin(lengths, _LENGTHS).any())


def find_nothing(values: Sequence[Any]) -> list[int]:
    """Return an empty list, for columns whose values are never omitted."""
    return []


find_text: Find = _find_equal(*TEXTS)
find_bytes: Find = _find_equal(BYTES)
find_array: Find = _find_equal([TEXT], [BYTES], [BASE64], [UUID], CODES)
find_entry: Find = _find_entry
find_raw: Find = _find_raw

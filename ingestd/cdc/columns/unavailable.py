"""Debezium's placeholders for large values that a change did not touch.

PostgreSQL omits unchanged TOASTed values from its log; the connector sends its default placeholder
instead, in a form that fits the column's type.
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
"""The form in arrays of integers: the bytes of the text, one an element."""
UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
"""The form in arrays of UUIDs: the name-based UUID (version 3) of the text."""

Find = Callable[[Sequence[Any]], list[int]]
"""Positions of placeholders in the decoded values of a column."""

_RAW_MAP = b'{"' + BYTES + b'"'
_RAW_FORMS = frozenset(
    {
        msgspec.json.encode(form)
        for form in (TEXT, BASE64, [TEXT], [BASE64], [UUID], CODES)
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


def may_hold_text(array: Array) -> bool:
    """Return whether any text has the placeholder's length: cheap, and mostly False."""
    if not isinstance(array, pa.StringArray):
        return True
    buffer = array.buffers()[1]
    offsets = np.frombuffer(memoryview(buffer or b""), np.int32)[array.offset :][: len(array) + 1]
    lengths = np.diff(offsets)
    return bool(((lengths == len(TEXT)) | (lengths == len(BASE64))).any())


def find_nothing(values: Sequence[Any]) -> list[int]:
    """Return no positions, for columns whose values are never large."""
    return []


find_text: Find = _find_equal(TEXT, BASE64)
find_bytes: Find = _find_equal(BYTES)
find_array: Find = _find_equal([TEXT], [BYTES], [BASE64], [UUID], CODES)
find_entry: Find = _find_entry
find_raw: Find = _find_raw

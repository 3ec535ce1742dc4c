"""Cast strings to ARRAY, MAP and ROW: `[a, b]`, `{k -> v}`, `{a, b}` and their SQL functions.

Strings are split one by one; their parts are cast as columns.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import DataType

_FORMS = {
    "ARRAY": (re.compile(r"\s*\[(.*)\]\s*"), re.compile(r"\s*ARRAY\s*\((.*)\)\s*", re.I)),
    "MAP": (re.compile(r"\s*\{(.*)\}\s*"), re.compile(r"\s*MAP\s*\((.*)\)\s*", re.I)),
    "ROW": (re.compile(r"\s*\{(.*)\}\s*"), re.compile(r"\s*STRUCT\s*\((.*)\)\s*", re.I)),
}
"""Type root -> the patterns of the bracket form and of the function form."""
_ENTRY = re.compile(r"(.+?)\s*->\s*(.+)")
_Cast = Callable[[Array, DataType], Array]
_Parts = list[str | None]


def cast_text_to_nested(array: Array, target: DataType, cast: _Cast) -> Array:
    """Cast strings to a nested type; `cast` casts an array of strings to an inner type.

    Raises UnsupportedError, naming the string, if it is invalid.
    """
    texts: Any = array.to_pylist()
    if target.root == "ARRAY" and target.element is not None:
        return _arrays(texts, target, target.element, cast)
    if target.root == "MAP":
        return _maps(texts, target, cast)
    return _rows(texts, target, cast)


def _content(text: str, root: str) -> tuple[str, bool]:
    """Return the string between the brackets, and whether it had the function form."""
    trimmed = text.strip()
    for number, form in enumerate(_FORMS[root]):
        match = form.fullmatch(trimmed)
        if match is not None:
            return match[1].strip(), number == 1
    raise UnsupportedError(f"'{text}' cannot be read as {root}")


def split_elements(content: str, *, keep_marks: bool = True) -> list[str]:
    """Split a string at the commas outside quotes and brackets; empty parts are dropped.

    Without `keep_marks`, quotes, backslashes and characters after a backslash are removed.
    """
    parts: list[str] = []
    current: list[str] = []
    depth, quoted, escaped = 0, False, False
    for c in content:
        is_mark = escaped or c in '\\"'
        if c == "," and depth == 0 and not (quoted or escaped):
            parts.append("".join(current))
            current.clear()
        elif keep_marks or not is_mark:
            current.append(c)
        if not (is_mark or quoted):
            depth = max(0, depth + (c in "([{") - (c in ")]}"))
        quoted ^= c == '"' and not escaped
        escaped = c == "\\" and not escaped
    parts.append("".join(current))
    return [piece.strip() for piece in parts if piece]


def _null_or(text: str) -> str | None:
    return None if text == "null" else text


def _arrays(texts: list[str | None], target: DataType, element: DataType, cast: _Cast) -> Array:
    lists = [None if text is None else split_elements(_content(text, "ARRAY")[0]) for text in texts]
    flat: _Parts = [_null_or(text) for parts in lists for text in parts or ()]
    values = cast(pa.array(flat, pa.string()), element)
    make: Any = pa.ListArray.from_arrays
    made: Array = make(_offsets(lists), values, to_arrow_type(target), mask=_mask(lists))
    return made


def _maps(texts: list[str | None], target: DataType, cast: _Cast) -> Array:
    entries = [None if text is None else _entries(text) for text in texts]
    keys: _Parts = [_null_or(key) for pairs in entries for key, _ in pairs or ()]
    items: _Parts = [_null_or(item) for pairs in entries for _, item in pairs or ()]
    if target.key is None or target.value is None or None in keys:
        raise UnsupportedError(f"a key of a {target} is null")
    made: Any = pa.MapArray
    result: Array = made.from_arrays(
        _offsets(entries),
        cast(pa.array(keys, pa.string()), target.key),
        cast(pa.array(items, pa.string()), target.value),
        to_arrow_type(target),
        mask=_mask(entries),
    )
    return result


def _entries(text: str) -> list[tuple[str, str]] | None:
    if text.strip().upper() == "NULL":
        return None
    content, is_function = _content(text, "MAP")
    parts = split_elements(content, keep_marks=False)
    if is_function:
        if len(parts) % 2:
            raise UnsupportedError(f"'{text}' cannot be read as MAP: a key has no value")
        return list(dict(zip(parts[::2], parts[1::2], strict=True)).items())
    entries: dict[str, str] = {}
    for entry in parts:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise UnsupportedError(f"'{text}' cannot be read as MAP")
        entries[match[1].strip()] = match[2].strip()
    return list(entries.items())


def _rows(texts: list[str | None], target: DataType, cast: _Cast) -> Array:
    width = len(target.fields)
    columns: list[_Parts] = [[] for _ in range(width)]
    for text in texts:
        parts: _Parts = [None] * width
        content = "" if text is None else _content(text, "ROW")[0]
        if content:
            parts = [_null_or(element) for element in split_elements(content)]
        if len(parts) != width:
            raise UnsupportedError(f"'{text}' cannot be read as {target}: {len(parts)} fields")
        for column, field_text in zip(columns, parts, strict=True):
            column.append(field_text)
    cells = zip(columns, target.fields, strict=True)
    children = [cast(pa.array(column, pa.string()), field.type) for column, field in cells]
    arrow_type: Any = to_arrow_type(target)
    fields = [arrow_type.field(i) for i in range(width)]
    mask = pa.array([text is None for text in texts])
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _offsets(lists: list[Any]) -> Array:
    ends = [0]
    for parts in lists:
        ends.append(ends[-1] + len(parts or ()))
    return pa.array(ends, pa.int32())


def _mask(lists: list[Any]) -> Array:
    return pa.array([parts is None for parts in lists], pa.bool_())

"""Rows of files with a JSON object per line, converted to the types of their columns as in Java."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ingestd.paimon.casts.csv_rows import typed_column
from ingestd.paimon.spec import text_options
from ingestd.paimon.spec.arrow import Array, list_offsets, to_arrow_type
from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.spec.option_types import Options

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def json_rows(lines: Sequence[str], fields: Sequence[DataField], options: Options) -> pa.Table:
    """Parse lines, each a JSON object, into rows with the columns `fields`.

    A member that an object lacks is null. Raises ValueError for a line that is not JSON, and for an
    invalid value, such as a line that is an array; with the option `json.ignore-parse-errors`, an
    invalid value is null instead.
    """
    lenient = text_options.JSON_IGNORE_ERRORS.of(options)
    rows: list[Any] = [_DECODER.decode(line) for line in lines]
    members = _members(rows, fields, lenient=lenient)
    return pa.table(dict(zip([field.name for field in fields], members, strict=True)))


def _members(nodes: Sequence[Any], fields: Sequence[DataField], *, lenient: bool) -> list[Array]:
    objects = _checked(nodes, dict, lenient=lenient)
    return [
        _column([node.get(field.name) if node else None for node in objects], field.type, lenient)
        for field in fields
    ]


def _column(nodes: Sequence[Any], t: DataType, lenient: bool) -> Array:
    """Return JSON values as values of a type."""
    arrow: Any = pa
    kind: Any = to_arrow_type(t)
    array: Array
    if t.root == "ROW":
        objects = _checked(nodes, dict, lenient=lenient)
        children = _members(objects, t.fields, lenient=lenient)
        inner = [kind.field(i) for i in range(kind.num_fields)]
        array = arrow.StructArray.from_arrays(children, fields=inner, mask=_nulls(objects))
    elif t.root == "ARRAY" and t.element is not None:
        lists = _checked(nodes, list, lenient=lenient)
        values = _column([node for nodes in lists for node in nodes or ()], t.element, lenient)
        array = arrow.ListArray.from_arrays(_offsets(lists), values, kind, mask=_nulls(lists))
    elif t.root == "MAP" and t.key is not None and t.value is not None:
        maps = _checked(nodes, dict, lenient=lenient)
        keys = _column([key for node in maps for key in node or ()], t.key, lenient)
        items = _column([v for node in maps for v in (node or {}).values()], t.value, lenient)
        array = arrow.MapArray.from_arrays(_offsets(maps), keys, items, kind, mask=_nulls(maps))
    else:
        array = typed_column([_text(node) for node in nodes], t, lenient=lenient)
    return array


def _checked(nodes: Sequence[Any], kind: type, *, lenient: bool) -> list[Any]:
    wrong = [node for node in nodes if node is not None and not isinstance(node, kind)]
    if wrong and not lenient:
        raise ValueError(f"{wrong[0]!r} is not a JSON {'object' if kind is dict else 'array'}")
    return [node if isinstance(node, kind) else None for node in nodes]


def _text(node: object) -> str | None:
    """Return the text of a JSON value, "" for an object or array."""
    if node is None or isinstance(node, str):
        return node
    return "" if isinstance(node, Mapping | list) else str(node).lower()


def _offsets(nodes: Sequence[Any]) -> Array:
    return list_offsets([len(node or ()) for node in nodes])


def _nulls(nodes: Sequence[Any]) -> Array:
    mask: Array = pa.array([node is None for node in nodes])
    return mask

"""Messages of several tables in one chunk, and what else stands in the topics of a format."""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.support.layout_messages import (
    STYLES,
    Change,
    Document,
    changes,
    message,
    odd_texts,
    text,
)

_ALIAS = ""
"""Stands for the name `item` with an escape in it."""
_TABLES = ("item", "item", "other", "third", _ALIAS)
_ALTER = "alter table item rename column v to w"
_DMS = {"record-type": "control", "schema-name": "inv", "table-name": "item"}
_OTHERS: Mapping[str, list[Any]] = {
    "maxwell-json": [
        {"type": "heartbeat"},
        {"database": "inv", "table": "item", "type": "table-alter", "sql": _ALTER,
         "def": {"columns": [{"name": "id"}, {"name": "w"}]}, "position": "bin.1:7"},
        {"database": "inv", "table": "item", "type": "bootstrap-start", "data": {}},
    ],
    "canal-json": [
        {"database": "inv", "table": "item", "type": "TRUNCATE", "isDdl": True},
        {"database": "inv", "table": "item", "type": "ALTER", "isDdl": True, "sql": _ALTER},
        {"database": "", "table": "", "type": "QUERY", "isDdl": False, "sql": "flush"},
    ],
    "ogg-json": [{"table": "INV.ITEM", "op_type": "T", "pos": "00000000000000000007"}],
    "aws-dms-json": [
        {"metadata": {**_DMS, "operation": "truncate-table"}},
        {"metadata": {**_DMS, "operation": "create-table"}},
    ],
    "aliyun-json": [
        {"schema": {}, "payload": {"op": "HEARTBEAT"}},
        {"schema": {}, "payload": {"op": "ALTER"}, "ddl": "alter table"},
    ],
}  # fmt: skip
_DEBEZIUM = "debezium-json"
_OTHERS_OF_DEBEZIUM: list[Any] = [
    {"op": "t", "source": {"db": "inv", "table": "item", "lsn": 7}},
    {"op": "m", "source": {"db": "inv"}, "message": {}},
    {"ts_ms": 1},
    {"id": 1, "__op": "c", "__table": "item"},
    {"schema": {"type": "struct", "fields": []}, "payload": {"ts_ms": 1}},
]
_ANY: list[Any] = [{}, [], "x", 1]


def document_of(name: str, change: Change, number: int, style: int) -> Document:
    """A change in the words of a format; Debezium's may have a wrapper that names no types."""
    if name != _DEBEZIUM:
        return message(name, change, number, style)
    op, row, old = change
    source = {"db": "inv", "table": "item", "lsn": number, "snapshot": "false"}
    images = (row, None) if op == "d" else (old and {**row, **old}, row)
    event = {"before": images[0], "after": images[1], "source": source, "op": op}
    return event if style % 2 else {"schema": None, "payload": event}


def of_table(value: bytes, name: str) -> bytes:
    """A message of the table `item` as one of another table, or of the same in other letters."""
    lower, upper = name or "\\u0069tem", name.upper() or "\\u0049TEM"
    return value.replace(b'"item"', b'"%s"' % lower.encode()).replace(
        b".ITEM", b".%s" % upper.encode()
    )


@st.composite
def mixed(draw: st.DrawFn, name: str, size: int, first: int, irregular: int) -> list[bytes | None]:
    """Values of messages of several tables, one in `odd` of them no sound row (zero: none)."""
    names = ["id", "v", "n"]
    style = draw(st.integers(0, STYLES - 1))
    of_format = _OTHERS_OF_DEBEZIUM if name == _DEBEZIUM else _OTHERS.get(name, [])
    values: list[bytes | None] = []
    for index in range(size):
        document = document_of(name, draw(changes(names)), first + index, style)
        if not irregular or draw(st.integers(1, irregular)) > 1:
            table = draw(st.sampled_from(_TABLES[: None if irregular else -1]))
            values.append(of_table(text(document), table))
            continue
        others = [json.dumps(one).encode() for one in [*of_format, *_ANY]]
        broken: list[bytes | None] = [None, b"null", b"", b'{"a":', b"\xff"]
        values.append(draw(st.sampled_from(others) | st.sampled_from(broken) | odd_texts(document)))
    return values

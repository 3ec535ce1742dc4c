"""Messages of one table in every JSON format that has a native layout, sound ones and odd ones."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
TEXTS = st.text(max_size=6) | st.sampled_from(
    [
        "12.50",
        "",
        "007",
        "x:9",
        "BI_a",
        "a_isMissing",
        "__debezium_unavailable_value",
        "\ud83d\ude00",
    ]
).filter(lambda text: text.isprintable() or not text)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | NUMBERS | TEXTS | st.just([1, {"a": None}]) | st.just({})
)
TYPES = {"id": "bigint(20)", "v": "varchar(20)", "n": "int(11) unsigned zerofill"} | {
    "d": "decimal(20,3)", "f": "tinyint(1)", "e": "enum('a','b')", "t": "datetime(6)",
    "r": "double",
}  # fmt: skip
SOUND: Mapping[str, st.SearchStrategy[Any]] = {
    "id": st.integers(0, 3),
    "v": st.none() | st.text(st.characters(codec="utf-8"), max_size=8) | TEXTS,
    "n": st.none() | st.integers(0, 2**32 - 1),
    "d": st.none() | st.integers(-999, 999),
    "f": st.none() | st.booleans(),
    "e": st.none() | st.sampled_from(["a", "b"]),
    "t": st.none() | st.sampled_from(["2024-02-29 01:02:03.123456", "0000-00-00 00:00:00"]),
    "r": st.none() | st.floats(allow_nan=False, allow_infinity=False),
}
Change = tuple[str, Document, Document | None]
"""Operation, row and what an update says of the row before it."""


@st.composite
def changes(draw: st.DrawFn, names: list[str]) -> Change:
    row = {name: draw(SOUND[name]) for name in names}
    op = draw(st.sampled_from("crudu"))
    if draw(st.integers(0, 4)) == 0 and len(row) > 1:
        del row[names[-1]]
    old = None
    if op == "u" and draw(st.booleans()):
        changed = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        old = {name: draw(SOUND[name]) for name in changed}
    return op, row, old


def _texts(row: Document) -> Document:
    """Values as Canal writes them: text."""
    return {
        name: None if value is None else str(int(value) if isinstance(value, bool) else value)
        for name, value in row.items()
    }


def _maxwell(change: Change, number: int, more: Any) -> Document:
    op, row, old = change
    kind = {"c": "insert", "r": "bootstrap-insert", "u": "update", "d": "delete"}[op]
    places: list[Document] = [
        {"position": f"bin.000004:{number}", "commit": True},
        {"position": f"bin.000005:{number}", "xoffset": number},
        {"position": None, "commit": False}, {}, {"position": f"bin.٣:{number}", "xoffset": 4095},
        {"position": f"bin.1:{'0' * 18}{number}", "xoffset": 1}, {"position": "x:", "commit": None},
    ]  # fmt: skip
    head = {"database": "inv", "table": "item", "type": kind, "ts": 1, "data": row, **places[more]}
    return {**head, "primary_key_columns": ["id"]} | ({} if old is None else {"old": old})


def _canal(change: Change, number: int, more: Any) -> Document:
    op, row, old = change
    count = 1 + more % 3
    rows = [{**_texts(row), "id": str(number + place)} for place in range(count)]
    head: Document = {"data": rows, "database": "inv", "id": number, "isDdl": False}
    olds = None if old is None else [_texts(old)] * count
    kind = {"c": "INSERT", "r": "ROW", "u": "UPDATE", "d": "DELETE"}[op]
    about = {"mysqlType": TYPES, "old": olds, "pkNames": ["id"], "sqlType": {"id": -5}}
    return head | about | {"table": "item", "type": kind}


def _ogg(change: Change, number: int, more: Any) -> Document:
    op, row, old = change
    head: Document = {"table": "INV.ITEM", "op_type": {"u": "U", "d": "D"}.get(op, "I")}
    head |= {"pos": [f"{number:020}", str(2**63 + number), None, "-", "7"][more % 5]}
    if more % 2:
        head["primary_keys"] = ["id"]
    if op == "d":
        return head | {"before": row}
    return head | ({} if old is None else {"before": old}) | {"after": row}


def _dms(change: Change, number: int, more: Any) -> Document:
    op, row, old = change
    words = {"c": "insert", "r": "load", "u": "update", "d": "delete"}
    about = {"operation": words[op], "schema-name": "inv", "table-name": "item", "n": number}
    about |= {} if more % 2 else {"record-type": "data"}
    return {"data": row, "metadata": about} | ({} if old is None else {"before-image": old})


def _aliyun(change: Change, number: int, more: Any) -> Document:
    op, row, old = change
    types = {"id": "LONG", "r": "DOUBLE", "f": "BOOLEAN"}
    columns = [{"name": name, "type": types.get(name, "STRING")} for name in TYPES]
    source = {"dbName": "inv", "tableName": "item"}
    kind = {"u": "UPDATE_AFTER", "d": "DELETE" if more else "UPDATE_BEFORE"}.get(op, "INSERT")
    images = {"before": old, "after": row} if op != "d" else {"before": row, "after": None}
    payload: Document = {
        name: None if image is None else {"dataColumn": _texts(image)}
        for name, image in images.items()
    }
    payload |= {"op": kind, "sequenceId": ["12", 12, None, "0", "x", "-1"][more % 6], "ddl": None}
    schema = {"dataColumn": columns, "primaryKey": ["id"], "source": source}
    return {"schema": schema, "payload": payload}


def _flat(change: Change, number: int, more: Any) -> Document:
    op, row, _ = change
    deleted = {"__deleted": "true" if op == "d" else "false"}
    styles: list[Document] = [
        {"__op": op, "__table": "item", "__lsn": number}, {"__op": op, **deleted},
        {"__op": op, "__source_file": "b.1", "__source_pos": number, "__source_snapshot": "last"},
        {**deleted}, {"__deleted": op == "d", "__op": op, "__lsn": None, "__db": None},
        {"__op": op, "__snapshot": None, "__file": "b.2", "__pos": 4, "__row": 1, "__lsn": None},
    ]  # fmt: skip
    return {**row, **styles[more % 6]}


_FORMATS: Mapping[str, Callable[[Change, int, Any], Document]] = {
    "maxwell-json": _maxwell,
    "canal-json": _canal,
    "ogg-json": _ogg,
    "aws-dms-json": _dms,
    "aliyun-json": _aliyun,
    "debezium-flat-json": _flat,
    "json": lambda change, number, more: change[1],
}
FORMATS = tuple(_FORMATS)
STYLES = 7
"""Ways in which a format says what it may say in more than one."""


def message(name: str, change: Change, number: int, style: int) -> Document:
    """A change in the words of a format, in one of its styles."""
    return _FORMATS[name](change, number, style)


def text(document: Any, *, blank: str = "", ascii_only: bool = True) -> bytes:
    """A document as JSON."""
    separators = (f"{blank},{blank}", f"{blank}:{blank}")
    return json.dumps(document, separators=separators, ensure_ascii=ascii_only).encode()


def paths(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of a document are."""
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    below = [found for name, value in items for found in paths(value, (*path, name))]
    return [path, *below] if path else below


@st.composite
def odd_texts(draw: st.DrawFn, document: Document) -> bytes:
    """The document with something changed: a value, a name, a field twice, a byte."""
    copy = json.loads(json.dumps(document))
    how = draw(st.integers(0, 6))
    if how <= 2:
        path = draw(st.sampled_from(paths(copy)))
        inner = copy
        for name in path[:-1]:
            inner = inner[name]
        if how == 0:
            del inner[path[-1]]
        else:
            inner[path[-1]] = draw(VALUES)
        return text(copy)
    whole = text(copy)
    at = draw(st.integers(0, len(whole) - 1))
    if how == 3:  # a field more, or twice, in any object
        starts = [
            place for place, byte in enumerate(whole[:-1]) if whole[place : place + 2] == b'{"'
        ]
        at = draw(st.sampled_from(starts)) + 1 if starts else 1
        field = draw(st.sampled_from(["id", "v", "type", "__op", "payload", "before", "x"]))
        return whole[:at] + text({field: draw(VALUES)})[1:-1] + b"," + whole[at:]
    if how == 4:
        name = draw(st.sampled_from([b'"id"', b'"v"', b'"type"', b'"data"', b'"__op"', b'"after"']))
        return whole.replace(name, b'"\\u00%02x%s' % (name[1], name[2:]))
    if how == 5:
        return whole[:at] + draw(st.sampled_from([b"\xff", b"\\", b'"', b"{}", b"0"])) + whole[at:]
    return whole[:at]

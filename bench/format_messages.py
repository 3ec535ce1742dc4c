"""The same changes of one table in the words of each JSON format."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]
Change = tuple[int, str, Row, Row | None]
"""Number, operation (c, u or d), row after it (before it for d) and the row before an update."""

_TYPES = {
    "id": "bigint",
    "tenant": "int",
    "status": "enum('new','paid','sent')",
    "total": "decimal(10,2)",
    "note": "varchar(100)",
    "email": "varchar(50)",
    "qty": "int",
    "vip": "tinyint(1)",
    "city": "varchar(20)",
    "created": "bigint",
}
_CONNECT_TYPES = {
    **dict.fromkeys(("status", "note", "email", "city"), "string"),
    **dict.fromkeys(("tenant", "qty"), "int32"),
    "total": "double",
    "vip": "boolean",
}
_WORDS = {"c": "insert", "u": "update", "d": "delete"}


def changes(count: int) -> list[Change]:
    """Changes of a table with ten columns; a third each inserts, updates, deletes."""
    pick = random.Random(1)
    found: list[Change] = []
    for number in range(count):
        row = {
            "id": number,
            "tenant": number % 7,
            "status": pick.choice(["new", "paid", "sent"]),
            "total": round(pick.random() * 1000, 2),
            "note": "n" * pick.randint(5, 40),
            "email": f"user{number}@example.org",
            "qty": pick.randint(1, 50),
            "vip": bool(number & 1),
            "city": pick.choice(["Oslo", "Rome"]),
            "created": 1_750_000_000_000 + number,
        }
        operation = pick.choice("cud")
        found.append((number, operation, row, {**row, "note": "old"} if operation == "u" else None))
    return found


def messages(name: str, found: list[Change]) -> list[tuple[bytes, bytes]]:
    """Keys and values of the messages of a format."""
    say = _FORMATS[name]
    return [(_text(_key(name, one)), _text(say(one))) for one in found]


def _text(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _key(name: str, change: Change) -> object:
    number = change[0]
    return {"id": _text({"$oid": f"{number:024x}"}).decode() if "bson" in name else number}


def _images(change: Change) -> tuple[Row | None, Row | None]:
    _, operation, row, before = change
    return (row, None) if operation == "d" else (before, row)


def _debezium(change: Change) -> object:
    number, operation, *_ = change
    before, after = _images(change)
    named = {"connector": "postgresql", "db": "inv", "schema": "public", "table": "item"}
    source = {**named, "lsn": number, "snapshot": "false", "ts_ms": 1_750_000_000_000}
    return {"before": before, "after": after, "source": source, "op": operation, "ts_ms": 1}


def _flat(change: Change) -> object:
    number, operation, row, _ = change
    deleted = "true" if operation == "d" else "false"
    added = {"__deleted": deleted, "__op": operation, "__table": "item", "__lsn": number}
    return {**row, **added, "__source_ts_ms": 1_750_000_000_000}


def _maxwell(change: Change) -> object:
    number, operation, row, before = change
    head = {"database": "inv", "table": "item", "type": _WORDS[operation], "ts": 1_750_000_000}
    head |= {"xid": number, "commit": True, "position": f"mysql-bin.000004:{number}"}
    old = {} if before is None else {"old": {"note": before["note"]}}
    return {**head, "data": row, **old, "primary_key_columns": ["id"]}


def _canal(change: Change) -> object:
    number, operation, row, before = change
    texts = {name: str(int(v) if isinstance(v, bool) else v) for name, v in row.items()}
    old = None if before is None else [{"note": before["note"]}]
    head = {"data": [texts], "database": "inv", "es": 1_750_000_000_000, "id": number}
    head |= {"isDdl": False, "mysqlType": _TYPES, "old": old, "pkNames": ["id"], "sql": ""}
    codes = dict.fromkeys(_TYPES, 12)
    kind = _WORDS[operation].upper()
    return {**head, "sqlType": codes, "table": "item", "ts": 1_750_000_000_321, "type": kind}


def _ogg(change: Change) -> object:
    number, operation, *_ = change
    before, after = _images(change)
    head = {"table": "INV.ITEM", "op_type": {"c": "I", "u": "U", "d": "D"}[operation]}
    head |= {"op_ts": "2025-06-15 10:00:00.000123", "pos": f"{number:020}"}
    return {**head, "primary_keys": ["id"], "tokens": {}, "before": before, "after": after}


def _dms(change: Change) -> object:
    number, operation, row, _ = change
    about = {"timestamp": "2025-06-15T10:00:00.000123Z", "record-type": "data"}
    about |= {"operation": _WORDS[operation], "schema-name": "inv", "table-name": "item"}
    return {"data": row, "metadata": {**about, "transaction-id": number}}


def _aliyun(change: Change) -> object:
    number, operation, *_ = change
    columns = [{"name": name, "type": "STRING"} for name in _TYPES]
    source = {"dbType": "MySQL", "dbName": "inv", "tableName": "item"}
    images = {
        name: None if row is None else {"dataColumn": {n: str(v) for n, v in row.items()}}
        for name, row in zip(("before", "after"), _images(change), strict=True)
    }
    kind = {"c": "INSERT", "u": "UPDATE_AFTER", "d": "DELETE"}[operation]
    schema = {"dataColumn": columns, "primaryKey": ["id"], "source": source}
    payload = {**images, "sequenceId": str(number), "op": kind, "ddl": None}
    return {"schema": schema, "payload": payload, "version": "0.0.1"}


def _bson(change: Change) -> object:
    number, operation, row, _ = change
    document = {"_id": {"$oid": f"{number:024x}"}} | {n: v for n, v in row.items() if n != "id"}
    after = None if operation == "d" else _text(document).decode()
    source = {"connector": "mongodb", "db": "inv", "collection": "item", "snapshot": "false"}
    return {"before": None, "after": after, "source": source, "op": operation, "ts_ms": 1}


_FORMATS: Mapping[str, Callable[[Change], object]] = {
    "debezium-json": _debezium,
    "debezium-flat-json": _flat,
    "json": lambda change: change[2],
    "maxwell-json": _maxwell,
    "canal-json": _canal,
    "ogg-json": _ogg,
    "aws-dms-json": _dms,
    "aliyun-json": _aliyun,
    "debezium-bson": _bson,
    "raw": lambda change: change[2],
}
FORMATS = tuple(_FORMATS)
MIXED = tuple(name for name in FORMATS if name not in ("json", "debezium-bson", "raw"))
"""Formats whose messages name a table that is not that of the topic."""
TABLES, _BETWEEN = 4, 1000
_DELETED = 10
Texts = list[tuple[bytes, bytes | None]]
"""Keys and values of messages."""


def variants(name: str, texts: list[tuple[bytes, bytes]]) -> dict[str, Texts]:
    """The same messages in the other ways in which they come."""
    found = {}
    if name == "debezium-json":
        found["schemas"] = with_schemas(texts)
    if name in MIXED:
        found["mixed"] = mixed(texts)
    if name in ("json", "debezium-flat-json"):
        found["tombstones"] = with_tombstones(texts)
    return found


def with_schemas(texts: list[tuple[bytes, bytes]]) -> Texts:
    """The messages as Kafka Connect's JSON converter writes them by default."""
    key, row = ([_connect_field(name) for name in names] for names in (("id",), _TYPES))
    source = [_connect_field(name, "string") for name in ("connector", "db", "schema", "table")]
    source += [_connect_field("snapshot", "string"), _connect_field("lsn"), _connect_field("ts_ms")]
    fields: list[Row] = [
        {"type": "struct", "fields": row, "optional": True, "field": "before"},
        {"type": "struct", "fields": row, "optional": True, "field": "after"},
        {"type": "struct", "fields": source, "optional": False, "field": "source"},
        _connect_field("op", "string"),
        _connect_field("ts_ms"),
    ]
    schemas = [
        _text({"type": "struct", "fields": fields, "optional": False}) for fields in (key, fields)
    ]
    wrapped = b'{"schema":%s,"payload":%s}'
    return [(wrapped % (schemas[0], key), wrapped % (schemas[1], value)) for key, value in texts]


def _connect_field(name: str, kind: str = "") -> Row:
    kind = kind or _CONNECT_TYPES.get(name, "int64")
    return {"type": kind, "optional": name != "id", "field": name}


def with_tombstones(texts: list[tuple[bytes, bytes]]) -> Texts:
    """The messages, one in ten of which is without a value, which deletes its key."""
    return [
        (key, None if number % _DELETED == _DELETED - 1 else value)
        for number, (key, value) in enumerate(texts)
    ]


def mixed(texts: list[tuple[bytes, bytes]]) -> Texts:
    """The messages as those of four tables, among them one in a thousand without a value."""
    pick = random.Random(2)
    found: Texts = []
    for number, (key, value) in enumerate(texts):
        table = b"%d" % pick.randrange(TABLES)
        value = value.replace(b'"item"', b'"item%s"' % table).replace(b".ITEM", b".ITEM" + table)
        found.append((key, None if number % _BETWEEN == _BETWEEN - 1 else value))
    return found

"""A load for one table, `orders`, as Debezium's MySQL connector would send it, and its outcome.

Every event follows from the seed and its number alone, so the table that a load must end in needs
no broker, and a second load goes on exactly where the first one stopped: `Load(start=1_000_000)`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KEY = "order_id"
BASE_MS = 1_750_000_000_000
STATUSES = ("NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED", "RETURNED")
REGIONS = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east")
# fmt: off
WORDS = (
    "door", "left", "parcel", "ring", "twice", "fragile", "glass", "gift", "paper", "invoice",
    "copy", "call", "before", "desk", "floor", "back", "yard", "neighbour", "evening",
    "morning", "weekend", "straße", "café", "señor", "naïve", "dock", "pallet",
)
# fmt: on
COLUMN_TYPES = {
    KEY: "BIGINT",
    "customer_id": "BIGINT",
    "status": "STRING",
    "amount": "DECIMAL(12, 2)",
    "note": "STRING",
    "qty": "INT",
    "price": "DOUBLE",
    "created_at": "BIGINT",
    "updated_at": "BIGINT",
    "region": "STRING",
}
ARROW_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DECIMAL(12, 2)": pa.decimal128(12, 2),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
}
ADDED, TABLE = pa.field("channel", pa.string()), pa.field("@table", pa.string())
CHANNELS = ("web", "shop", "phone")
CONNECT_TYPES = {"BIGINT": "int64", "INT": "int32", "DOUBLE": "double"}
SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in COLUMN_TYPES.items()])

_PHRASES = 4096
_CHUNK = 100_000
_FREE_NOTE = 32
_SNAPSHOT, _CREATE, _UPDATE, _DELETE = "r", "c", "u", "d"

Bits = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Load:
    """Events `start` to `start + events`; the first `snapshot` of all are rows read by a snapshot.

    `inserts` and `updates` are shares; the rest deletes. When all `keys` are in use an insert
    becomes an update. Keys are dealt out to the `tables` in turn. With `changing`, messages have
    their schemas beside them, and the tables get one more column in the middle of the load.
    """

    events: int = 1_000_000
    start: int = 0
    snapshot: int = 0
    keys: int = 400_000
    inserts: float = 0.55
    updates: float = 0.40
    partitions: int = 4
    tables: int = 1
    changing: bool = False
    seed: int = 7

    @property
    def total(self) -> int:
        """Events up to the end of this load, those of earlier loads included."""
        return self.start + self.events

    @property
    def table_names(self) -> list[str]:
        """The tables of the source database."""
        return [self.table_of(key) for key in range(self.tables)]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows at the end; with several tables, that of each row first."""
        first, last = [TABLE] * (self.tables > 1), [ADDED] * self.changing
        return pa.schema([*first, *SCHEMA, *last])

    def table_of(self, key: int) -> str:
        """The table with a key."""
        return "orders" if self.tables == 1 else f"orders_{key % self.tables}"

    def changed(self, number: int) -> bool:
        """Whether the tables have the added column when an event happens."""
        return self.changing and number >= self.events // 2


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the topic."""

    number: int
    partition: int
    key: bytes
    value: bytes

    @property
    def timestamp_ms(self) -> int:
        """When the source database changed."""
        return BASE_MS + self.number


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to which key, by event number."""

    operations: list[str]
    keys: list[int]


@dataclass(frozen=True, slots=True)
class Cells:
    """Drawn values of consecutive events, as columns of plain values."""

    customer: list[int]
    status: list[int]
    cents: list[int]
    phrase: list[int]
    no_note: list[bool]
    qty: list[int]
    price: list[float]
    region: list[int]
    partition: list[int]

    def row(self, index: int, number: int, key: int, created: int, phrases: list[str]) -> str:
        """The row that an event leaves, as JSON text."""
        cents = self.cents[index]
        note = "null" if self.no_note[index] else f'"{phrases[self.phrase[index]]} #{number}"'
        return (
            f'{{"order_id":{key},"customer_id":{self.customer[index]},'
            f'"status":"{STATUSES[self.status[index]]}",'
            f'"amount":"{cents // 100}.{cents % 100:02d}","note":{note},"qty":{self.qty[index]},'
            f'"price":{self.price[index]!r},"created_at":{BASE_MS + created},'
            f'"updated_at":{BASE_MS + number},"region":"{REGIONS[self.region[index]]}"}}'
        )


def events(load: Load) -> Iterator[Event]:
    """The records of a load, in the order in which the database changed."""
    for number, operation, key, before, after, partition in _changes(load):
        if number >= load.start:
            value = _envelope(number, operation, before, after, load.table_of(key))
            name = f'{{"order_id":{key}}}'
            if load.changing:
                value = f'{{"schema":{_schema_text(load.changed(number))},"payload":{value}}}'
                name = f'{{"schema":{_KEY_SCHEMA},"payload":{name}}}'
            yield Event(number, partition, name.encode(), value.encode())


def expected(load: Load) -> pa.Table:
    """The rows that are left at the end, ordered by key, in the types of the table."""
    last: dict[int, str] = {}
    for _, operation, key, _, after, _ in _changes(load):
        if operation == _DELETE:
            del last[key]
        else:
            last[key] = after
    rows = [json.loads(last[key]) for key in sorted(last)]
    for row in rows:
        row[TABLE.name] = load.table_of(row[KEY])
    columns = {name: [row.get(name) for row in rows] for name in load.schema.names}
    arrays = [
        pa.array(values, pa.string() if pa.types.is_decimal(kind) else kind).cast(kind)
        for values, kind in zip(columns.values(), load.schema.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=load.schema)


def plan(load: Load) -> Plan:
    """Decide what happens: the only place where a choice depends on earlier ones."""
    dice = np.random.default_rng(load.seed)
    shares = np.cumsum([load.inserts, load.updates])
    kinds = np.searchsorted(shares, dice.random(load.total), side="right").tolist()
    picks = dice.random(load.total).tolist()
    book = _Keys(load.keys)
    operations: list[str] = []
    keys: list[int] = []
    for number in range(load.total):
        operation = _SNAPSHOT if number < load.snapshot else book.possible(kinds[number])
        operations.append(operation)
        keys.append(book.act(operation, picks[number]))
    return Plan(operations, keys)


class _Keys:
    """Which keys are alive, which were freed by deletes, and how many were ever given out."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._given = 0
        self._live: list[int] = []
        self._free: list[int] = []

    def possible(self, kind: int) -> str:
        """The drawn operation, or what it becomes when there is no room or no row."""
        if not self._live:
            return _CREATE
        if kind == 0 and self._given >= self._size and not self._free:
            return _UPDATE
        return (_CREATE, _UPDATE, _DELETE)[kind]

    def act(self, operation: str, pick: float) -> int:
        """The key that the operation is on."""
        live = self._live
        if operation in (_SNAPSHOT, _CREATE):
            if self._given < self._size:
                self._given += 1
                live.append(self._given)
            else:
                live.append(self._free.pop())
            return live[-1]
        place = int(pick * len(live))
        key = live[place]
        if operation == _DELETE:
            live[place] = live[-1]
            live.pop()
            self._free.append(key)
        return key


def _changes(load: Load) -> Iterator[tuple[int, str, int, str, str, int]]:
    """Number, operation, key, row before, row after and partition of every event from 0 on."""
    past, phrases = plan(load), _phrases(load.seed)
    rows: dict[int, str] = {}
    created: dict[int, int] = {}
    for first in range(0, load.total, _CHUNK):
        keys = past.keys[first : first + _CHUNK]
        cells = _cells(load, first, keys)
        for index, key in enumerate(keys):
            number, operation = first + index, past.operations[first + index]
            before = rows.pop(key, "null")
            after = "null"
            if operation != _DELETE:
                if operation != _UPDATE:
                    created[key] = number
                after = rows[key] = cells.row(index, number, key, created[key], phrases)
            if load.changed(number):
                before, after = _widened(before, None), _widened(after, number)
                rows |= {} if operation == _DELETE else {key: after}
            yield number, operation, key, before, after, cells.partition[index]


def _widened(row: str, number: int | None) -> str:
    """A row with the added column, which is null in rows of before."""
    if row == "null" or f'"{ADDED.name}"' in row:
        return row
    value = "null" if number is None else f'"{CHANNELS[number % len(CHANNELS)]}"'
    return f'{row[:-1]},"{ADDED.name}":{value}}}'


_KEY_SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"type": "int64", "optional": False, "field": KEY}]},
    separators=(",", ":"),
)


@cache
def _schema_text(changed: bool) -> str:
    """The schema that Kafka Connect's JSON converter puts beside each value."""

    def field(name: str, kind: str, /, **more: object) -> dict[str, object]:
        return {"type": kind, "optional": name != KEY, **more, "field": name}

    columns = [
        field(name, CONNECT_TYPES.get(kind, "string")) for name, kind in COLUMN_TYPES.items()
    ]
    columns += [field(ADDED.name, "string")] * changed
    long = ("ts_ms", "server_id", "pos", "row")
    names = "version connector name ts_ms snapshot db sequence table server_id gtid file pos row"
    source = [field(name, "int64" if name in long else "string") for name in names.split()]
    row = {"fields": columns, "name": "shop.shop.orders.Value"}
    fields = [field("before", "struct", **row), field("after", "struct", **row)]
    fields += [field("source", "struct", fields=source), field("op", "string")]
    fields += [field("ts_ms", "int64"), field("transaction", "string")]
    return json.dumps({**field("", "struct"), "fields": fields}, separators=(",", ":"))


def _envelope(number: int, operation: str, before: str, after: str, table: str) -> str:
    now, snapshot = BASE_MS + number, "true" if operation == _SNAPSHOT else "false"
    return (
        f'{{"before":{before},"after":{after},"source":{{"version":"3.0.0.Final",'
        f'"connector":"mysql","name":"shop","ts_ms":{now},"snapshot":"{snapshot}","db":"shop",'
        f'"sequence":null,"table":"{table}","server_id":1,"gtid":null,"file":"binlog.000001",'
        f'"pos":{1000 + 400 * number},"row":0}},"op":"{operation}","ts_ms":{now + 7},'
        f'"transaction":null}}'
    )


def _cells(load: Load, first: int, keys: list[int]) -> Cells:
    numbers = np.arange(first, first + len(keys), dtype=np.uint64)
    bits = _mixed(numbers + np.uint64(load.seed << 40))
    own = np.array(keys, dtype=np.uint64)
    of_key = _mixed(own + np.uint64(load.seed << 41))
    return Cells(
        customer=_modulo(of_key, 0, 100_000),
        status=_modulo(bits, 32, len(STATUSES)),
        cents=_modulo(bits, 0, 100_000_000),
        phrase=_modulo(bits, 20, _PHRASES),
        no_note=[not value for value in _modulo(bits, 8, _FREE_NOTE)],
        qty=_modulo(bits, 40, 500),
        price=[value / 1e4 for value in _modulo(bits, 16, 1_000_000_000)],
        region=_modulo(of_key, 32, len(REGIONS)),
        partition=_modulo(_mixed(own), 0, load.partitions),
    )


def _modulo(bits: Bits, shift: int, size: int) -> list[int]:
    values: list[int] = ((bits >> np.uint64(shift)) % np.uint64(size)).astype(np.int64).tolist()
    return values


def _mixed(values: Bits) -> Bits:
    """Splitmix64: bits that are the same on every machine and in every version of numpy."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _phrases(seed: int) -> list[str]:
    dice = np.random.default_rng(seed)
    return [" ".join(dice.choice(WORDS, 8))[:52] for _ in range(_PHRASES)]

"""A workload of changes in the database of a small web shop, and the rows they must result in.

The tables `customers` and `orders` have inserts, updates and deletes; half-way `orders` gets the
column `coupon`. The seed determines all changes, so the final rows are known without a broker.
`ingestd.dev.produce` creates the messages of the changes.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_MS = 1_760_000_000_000
STATUSES = ("NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED")
TIERS = ("basic", "silver", "gold")
NAMES = ("Ada", "Björn", "Chiara", "Dmitri", "Émile", "Fatima", "Grace", "Håkon", "Ines", "Jun")
NOTES = (None, "ring twice", "café, 2nd floor", "leave at the door", "gift: “thanks” 🎁")
COUPONS = (None, "WELCOME", "SPRING10", "VIP")

DECIMAL = "org.apache.kafka.connect.data.Decimal"
ZONED = "io.debezium.time.ZonedTimestamp"
MICROS = "io.debezium.time.MicroTimestamp"
DATE = "io.debezium.time.Date"

Value = int | float | str | bool | None
Row = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the connector describes it, and its expected type in the table.

    `connect_type`, `semantic` and `parameters` are the type, name and parameters of its schema in
    Kafka Connect; `table_type` is the Paimon type.
    """

    name: str
    connect_type: str
    table_type: str
    semantic: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


CUSTOMERS = (
    Column("customer_id", "int64", "BIGINT"),
    Column("name", "string", "STRING"),
    Column("email", "string", "STRING"),
    Column("tier", "string", "STRING"),
    Column("score", "double", "DOUBLE"),
    Column("registered", "int32", "DATE", DATE),
    Column("active", "boolean", "BOOLEAN"),
)
ORDERS = (
    Column("order_id", "int64", "BIGINT"),
    Column("customer_id", "int64", "BIGINT"),
    Column("status", "string", "STRING"),
    Column(
        "amount",
        "bytes",
        "DECIMAL(12, 2)",
        DECIMAL,
        (("scale", "2"), ("connect.decimal.precision", "12")),
    ),
    Column("quantity", "int32", "INT"),
    Column("express", "boolean", "BOOLEAN"),
    Column("note", "string", "STRING"),
    Column("created_at", "string", "TIMESTAMP(6) WITH LOCAL TIME ZONE", ZONED),
    Column("updated_at", "int64", "TIMESTAMP(6)", MICROS),
)
COUPON = Column("coupon", "string", "STRING")
KEYS = {"customers": "customer_id", "orders": "order_id"}
TABLES = {"customers": CUSTOMERS, "orders": (*ORDERS, COUPON)}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row; `number` counts all changes from 0, `key` is the row's primary key.

    `row` is the row after the change, or None for a delete. `columns` are the columns of the table
    at the time of the change.
    """

    number: int
    table: str
    operation: str  # c, u or d
    key: int
    row: Row | None
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """The parameters of a workload.

    `events` is the number of changes; `seed` determines which. `partitions` is the number of
    partitions of each topic, and `prefix` the name of the database. With `envelope`, every message
    contains its schema.
    """

    events: int = 20_000
    seed: int = 7
    partitions: int = 4
    prefix: str = "shop"
    envelope: bool = True

    @property
    def topics(self) -> Mapping[str, str]:
        """The topic of each table."""
        return {table: f"{self.prefix}.public.{table}" for table in TABLES}

    def changes(self) -> Iterator[Change]:
        """Yield every change in the order in which the database made it."""
        shop = _Shop(self.seed)
        for number in range(self.events):
            yield shop.change(number, with_coupon=number >= self.events // 2)

    def expected(self) -> dict[str, list[dict[str, Value]]]:
        """Return the final rows by table, ordered by key, with values as JSON lines show them."""
        final: dict[str, dict[int, Row]] = {table: {} for table in TABLES}
        for change in self.changes():
            if change.row is None:
                del final[change.table][change.key]
            else:
                final[change.table][change.key] = change.row
        return {
            table: [
                {column.name: printed(column, row.get(column.name)) for column in TABLES[table]}
                for _, row in sorted(rows.items())
            ]
            for table, rows in final.items()
        }


def column_types(table: str) -> Mapping[str, str]:
    """Return Paimon types by name, for the columns of `table` that must be declared.

    These are the columns whose type messages without a schema do not show, such as decimals.
    """
    return {column.name: column.table_type for column in TABLES[table] if column.semantic}


def printed(column: Column, value: Value) -> Value:
    """Convert a value of a column to the form in which `ingestd read` prints it.

    Decimals, dates and timestamps become texts; other values, and None, are unchanged.
    """
    if value is None or not isinstance(value, int):
        return value
    if column.semantic == DECIMAL:
        return str(Decimal(value).scaleb(-2))
    if column.semantic == DATE:
        return (EPOCH + timedelta(days=value)).date().isoformat()
    if column.semantic in {ZONED, MICROS}:
        return iso_micros(value) + ("Z" if column.semantic == ZONED else "")
    return value


def iso_micros(value: int) -> str:
    """Return microseconds since 1970 as an ISO timestamp with six fraction digits and no zone."""
    moment = EPOCH + timedelta(microseconds=value)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")


class _Shop:
    """The simulated database: its current rows, and the random generator that selects changes."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._rows: dict[str, dict[int, Row]] = {table: {} for table in TABLES}
        self._live: dict[str, list[int]] = {table: [] for table in TABLES}
        self._made = dict.fromkeys(TABLES, 0)

    def change(self, number: int, *, with_coupon: bool) -> Change:
        few = len(self._live["customers"]) < 10
        table = "customers" if few or self._dice.random() < 0.15 else "orders"
        columns: tuple[Column, ...] = CUSTOMERS if table == "customers" else ORDERS
        if table == "orders" and with_coupon:
            columns = (*ORDERS, COUPON)
        operation = self._operation(table)
        if operation == "d":
            return Change(number, table, operation, self._delete(table), None, columns)
        key = self._insert(table, number) if operation == "c" else self._update(table, number)
        row = self._rows[table][key]
        if COUPON in columns and self._dice.random() < 0.5:
            row["coupon"] = self._dice.choice(COUPONS)
        return Change(number, table, operation, key, dict(row), columns)

    def _operation(self, table: str) -> str:
        chance = self._dice.random()
        if chance < 0.55 or len(self._live[table]) < 20:
            return "c"
        return "u" if chance < 0.93 else "d"

    def _insert(self, table: str, number: int) -> int:
        self._made[table] += 1
        key = self._made[table]
        self._live[table].append(key)
        make = self._new_customer if table == "customers" else self._new_order
        self._rows[table][key] = make(key, number)
        return key

    def _update(self, table: str, number: int) -> int:
        key = self._dice.choice(self._live[table])
        row = self._rows[table][key]
        if table == "customers":
            row["tier"] = self._dice.choice(TIERS)
            row["score"] = self._dice.randrange(10_000) / 100
            row["active"] = self._dice.random() < 0.9
        else:
            row["status"] = self._dice.choice(STATUSES)
            row["note"] = self._dice.choice(NOTES)
            row["amount"] = self._dice.randrange(-10_000, 10_000_000)
            row["updated_at"] = (START_MS + number) * 1000 + number % 1000
        return key

    def _delete(self, table: str) -> int:
        live = self._live[table]
        index = self._dice.randrange(len(live))
        key, live[index] = live[index], live[-1]
        live.pop()
        del self._rows[table][key]
        return key

    def _new_customer(self, key: int, _: int) -> Row:
        name = self._dice.choice(NAMES)
        return {
            "customer_id": key,
            "name": f"{name} {key}",
            "email": f"customer{key}@example.org",
            "tier": "basic",
            "score": 0.0,
            "registered": 18_000 + self._dice.randrange(2_000),
            "active": True,
        }

    def _new_order(self, key: int, number: int) -> Row:
        now = (START_MS + number) * 1000 + self._dice.randrange(1000)
        return {
            "order_id": key,
            "customer_id": self._dice.choice(self._live["customers"]),
            "status": "NEW",
            "amount": self._dice.randrange(10_000_000),
            "quantity": 1 + self._dice.randrange(20),
            "express": self._dice.random() < 0.2,
            "note": self._dice.choice(NOTES),
            "created_at": now,
            "updated_at": now,
        }

"""Load for measurements: change events of one `orders` table, and what the table must end in.

Events are those of Debezium's MySQL connector without the schema envelope, some 620 bytes each:
an update carries the row before and after. Everything follows from the seed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

START_MS = 1_750_000_000_000
STATUSES = ("NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED", "RETURNED")
REGIONS = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east")
PHRASES = tuple(
    f"{what} {where}"
    for what in ("ring twice", "call before", "fragile", "gift")
    for where in ("back door", "neighbour", "café", "Monday", "señora López")
)
KEY = "order_id"
INTEGERS = ("order_id", "customer_id", "qty", "created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class Load:
    """How many events of how many keys; of the events after the first of a key some delete it."""

    events: int = 1_000_000
    keys: int = 400_000
    inserts: float = 0.55
    deletes: float = 0.05
    partitions: int = 4
    seed: int = 11
    topic: str = "bench.shop.orders"


@dataclass(slots=True)
class History:
    """The load as columns: operation, key and drawn numbers of every event, by event number."""

    operations: list[str]
    keys: list[int]
    numbers: dict[str, list[int]] = field(default_factory=dict)


def history(load: Load) -> History:
    """Decide what happens: the only place where chance has a say."""
    dice = np.random.default_rng(load.seed)
    chance = dice.random(load.events).tolist()
    place = dice.random(load.events).tolist()
    operations: list[str] = []
    keys: list[int] = []
    live: list[int] = []
    made = 0
    for number in range(load.events):
        roll = chance[number]
        if not live or (roll < load.inserts and made < load.keys):
            made += 1
            live.append(made)
            operations.append("c")
            keys.append(made)
            continue
        index = int(place[number] * len(live))
        key = live[index]
        keys.append(key)
        if roll > 1 - load.deletes:
            live[index] = live[-1]
            live.pop()
            operations.append("d")
        else:
            operations.append("u")
    drawn = {
        "customer_id": dice.integers(1, 100_000, load.events),
        "status": dice.integers(0, len(STATUSES), load.events),
        "cents": dice.integers(0, 100_000_000, load.events),
        "phrase": dice.integers(-3, len(PHRASES), load.events),
        "qty": dice.integers(1, 500, load.events),
        "price": dice.integers(0, 1_000_000_000, load.events),
        "region": dice.integers(0, len(REGIONS), load.events),
    }
    return History(operations, keys, {name: values.tolist() for name, values in drawn.items()})


def row_text(past: History, number: int, created: int) -> str:
    """The row as event `number` leaves it, as the connector writes it."""
    drawn = past.numbers
    phrase = drawn["phrase"][number]
    note = "null" if phrase < 0 else json.dumps(f"{PHRASES[phrase]} #{number}", ensure_ascii=False)
    cents = drawn["cents"][number]
    return (
        f'{{"order_id":{past.keys[number]},"customer_id":{drawn["customer_id"][number]},'
        f'"status":"{STATUSES[drawn["status"][number]]}",'
        f'"amount":"{cents // 100}.{cents % 100:02d}","note":{note},"qty":{drawn["qty"][number]},'
        f'"price":{drawn["price"][number] / 10_000!r},"created_at":{START_MS + created},'
        f'"updated_at":{START_MS + number},"region":"{REGIONS[drawn["region"][number]]}"}}'
    )


def events(load: Load) -> Iterator[tuple[int, bytes, bytes, int]]:
    """Partition, key, value and timestamp of every event, in order."""
    past = history(load)
    rows: dict[int, str] = {}
    created: dict[int, int] = {}
    for number, (operation, key) in enumerate(zip(past.operations, past.keys, strict=True)):
        before = rows.pop(key, "null")
        after = "null"
        if operation != "d":
            after = rows[key] = row_text(past, number, created.setdefault(key, number))
        now = START_MS + number
        value = (
            f'{{"before":{before},"after":{after},"source":{{"version":"3.6.0.Final",'
            f'"connector":"mysql","name":"bench","ts_ms":{now},"snapshot":"false","db":"shop",'
            f'"sequence":null,"table":"orders","server_id":1,"gtid":null,'
            f'"file":"binlog.000001","pos":{4 + 400 * number},"row":0}},'
            f'"op":"{operation}","ts_ms":{now + 9},"transaction":null}}'
        )
        yield key % load.partitions, b'{"order_id":%d}' % key, value.encode(), now


def expected(load: Load) -> pa.Table:
    """The rows that are left, ordered by key."""
    past = history(load)
    last: dict[int, int] = {}
    created: dict[int, int] = {}
    for number, (operation, key) in enumerate(zip(past.operations, past.keys, strict=True)):
        if operation == "d":
            del last[key]
        else:
            created.setdefault(key, number)
            last[key] = number
    rows = [json.loads(row_text(past, last[key], created[key])) for key in sorted(last)]
    table = pa.Table.from_pylist(rows)
    return table.select([*rows[0]])

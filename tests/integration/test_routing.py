"""Two shards through broker and Spark into one table, with columns that no message has."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle

pytestmark = pytest.mark.integration

SHARDS = {
    "match": {"database": r"inv_(?P<n>\d+)", "table": "orders|items"},
    "to": "all_${table}",
    "add-columns": {"shard": "${n}"},
    "key-columns": ["shard"],
    "merge-shards": True,
}
ALL_ORDERS = {
    "partition-keys": ["day"],
    "options": {"bucket": "-1"},
    "computed-columns": {
        "month": "substring(day, 0, 7)",
        "day": "date_format(placed, yyyy-MM-dd, 3)",
    },
    "metadata-columns": [
        "topic",
        "offset",
        "database_name",
        "timestamp_type",
        "headers.trace",
        "headers.raw",
        "headers.empty",
        "headers",
    ],
    "metadata-column-prefix": "m_",
    "select": {"exclude": ["secret"]},
    "where": "secret <> 'draft' or n > 10",
}
MONTHLY = {
    "primary-keys": ["month", "id"],
    "partition-keys": ["month"],
    "options": {"bucket": "1"},
    "computed-columns": {"month": "date_format(placed, yyyy-MM, 3)"},
    "schema": {"aliases": {"amount": "n"}, "evolution": "none", "on-incompatible-schema": "ignore"},
    "select": {"exclude": ["secret"]},
}
JUNE, JULY = 1_750_000_000_000, 1_752_000_000_000


def event(
    shard: int, op: str, after: dict[str, Any] | None, before: dict[str, Any] | None = None
) -> bytes:
    source = {"db": f"inv_{shard}", "schema": "public", "table": "orders", "snapshot": "false"}
    return json.dumps({"op": op, "source": source, "before": before, "after": after}).encode()


def key(identity: int) -> bytes:
    return json.dumps({"id": identity}).encode()


def order(identity: int, placed: int, n: int) -> dict[str, Any]:
    return {"id": identity, "placed": placed, "n": n, "secret": "s"}


def test_shards_share_a_table_that_computed_columns_partition(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    records = {
        1: [
            (key(1), event(1, "c", order(1, JUNE, 1))),
            (key(2), event(1, "c", order(2, JUNE, 2))),
            (key(2), event(1, "d", None)),
        ],
        2: [
            (key(1), event(2, "c", order(1, JULY, 3))),
            (key(1), event(2, "u", order(1, JULY, 4))),
            (key(3), event(2, "c", order(3, JULY, 4))),
            (key(3), event(2, "u", order(3, JULY, 5) | {"secret": "draft"})),
        ],
    }
    moving = [
        (key(1), event(9, "c", order(1, JUNE, 1))),
        (key(2), event(9, "c", order(2, JUNE, 2))),
        (key(3), event(9, "c", order(3, JUNE, 3))),
        (key(1), event(9, "u", order(1, JULY, 5) | {"more": 1}, order(1, JUNE, 1))),
        (key(2), event(9, "u", order(2, JUNE, 6), order(2, JUNE, 2))),
        (key(3), event(9, "d", None, order(3, JUNE, 3))),
    ]
    broker.create_topic("s9.orders", 1)
    produce(broker, "s9.orders", moving[:3])
    for shard, messages in records.items():
        broker.create_topic(f"s{shard}.orders", 1)
        headers = [("trace", b"first"), ("raw", b"\xff\0"), ("trace", b"t%d" % shard)]
        headers += [("empty", b""), ("none", None)]
        produce(broker, f"s{shard}.orders", messages, headers=headers)
    config = {
        "pipeline": {"name": "p", "trigger": "0s"},
        "warehouse": {"path": str(tmp_path / "warehouse"), "database": "ods"},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topic-pattern": r"s\d\.orders",
                "format": "debezium-json",
            }
        },
        "routing": {"rules": [{"match": {"topic": "s9.*"}, "to": "monthly"}, SHARDS]},
        "tables": {"all_orders": ALL_ORDERS, "monthly": MONTHLY},
    }
    with run_daemon(config, tmp_path) as daemon:
        reading = Watched(daemon, "shop")
        reading.await_offsets(10)
        produce(broker, "s9.orders", moving[3:])
        reading.await_offsets(13)
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail(80)
    assert oracle.fsck(tmp_path / "warehouse", "ods", "monthly", "--all") == []
    monthly = oracle.read(tmp_path / "warehouse", "ods", "monthly")
    assert sorted(monthly, key=lambda row: int(row["id"])) == [
        {"id": 1, "month": "2025-07", "placed": JULY, "amount": 5},
        {"id": 2, "month": "2025-06", "placed": JUNE, "amount": 6},
    ]
    assert oracle.fsck(tmp_path / "warehouse", "ods", "all_orders", "--all") == []
    rows = oracle.read(tmp_path / "warehouse", "ods", "all_orders")
    assert [(row.pop("m_timestamp_type"), row.pop("m_trace")) for row in rows] == [
        ("CreateTime", f"t{row['shard']}") for row in rows
    ]
    assert [row.pop("m_headers") for row in rows] == [
        [
            ["empty", ""],
            ["none", None],
            ["raw", "ff00"],
            ["trace", f"t{row['shard']}".encode().hex()],
        ]
        for row in rows
    ]
    assert [(row.pop("m_raw"), row.pop("m_empty")) for row in rows] == [("\ufffd\0", "")] * 2
    june = {"day": "2025-06-15", "month": "2025-06", "placed": JUNE}
    july = {"day": "2025-07-08", "month": "2025-07", "placed": JULY}
    assert sorted(rows, key=lambda row: str(row["shard"])) == [
        {"id": 1, "n": 1, "shard": "1", "m_topic": "s1.orders", "m_offset": 0,
         "m_database_name": "inv_1", **june},
        {"id": 1, "n": 4, "shard": "2", "m_topic": "s2.orders", "m_offset": 1,
         "m_database_name": "inv_2", **july},
    ]  # fmt: skip

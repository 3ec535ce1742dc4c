import base64
import json
from typing import Any

import pytest

from ingestd.dev.produce import Message, messages
from ingestd.dev.workload import KEYS, Change, Workload


def pairs(workload: Workload) -> list[tuple[Change, Message]]:
    sent = iter(messages(workload))
    found = []
    for change in workload.changes():
        found.append((change, next(sent)))
        if change.operation == "d":
            tombstone = next(sent)
            assert tombstone.value is None
            assert tombstone.key == found[-1][1].key
    assert next(sent, None) is None
    return found


def payload(message: Message) -> dict[str, Any]:
    assert message.value is not None
    document: dict[str, Any] = json.loads(message.value)
    return document.get("payload", document)


def test_one_key_stays_in_one_partition_and_all_partitions_are_used() -> None:
    where: dict[tuple[str, bytes], set[int]] = {}
    for message in messages(Workload(events=2000, partitions=3)):
        where.setdefault((message.topic, message.key), set()).add(message.partition)
    assert all(len(partitions) == 1 for partitions in where.values())
    assert set.union(*where.values()) == {0, 1, 2}


def test_positions_grow_with_every_change() -> None:
    positions = [payload(m)["source"]["lsn"] for _, m in pairs(Workload(events=300))]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("envelope", [True, False])
def test_messages_carry_the_rows(envelope: bool) -> None:
    for change, message in pairs(Workload(events=300, envelope=envelope)):
        event = payload(message)
        key = json.loads(message.key)
        assert key.get("payload", key) == {KEYS[change.table]: change.key}
        assert event["op"] == change.operation
        if change.row is None:
            assert event["after"] is None
            assert event["before"][KEYS[change.table]] == change.key
        else:
            assert event["after"].keys() == {column.name for column in change.columns}
            assert event["after"][KEYS[change.table]] == change.key


def test_decimals_are_the_bytes_of_their_unscaled_number() -> None:
    for change, message in pairs(Workload(events=2000)):
        if change.table == "orders" and change.row is not None:
            raw = base64.b64decode(payload(message)["after"]["amount"])
            amount = change.row["amount"]
            assert int.from_bytes(raw, "big", signed=True) == amount
            shorter = raw[1:]
            assert not shorter or int.from_bytes(shorter, "big", signed=True) != amount


def test_the_envelope_describes_the_columns_of_its_own_row() -> None:
    for change, message in pairs(Workload(events=400)):
        assert message.value is not None
        schema = json.loads(message.value)["schema"]
        after = next(field for field in schema["fields"] if field["field"] == "after")
        assert [f["field"] for f in after["fields"]] == [c.name for c in change.columns]
        assert [f.get("name", "") for f in after["fields"]] == [c.semantic for c in change.columns]

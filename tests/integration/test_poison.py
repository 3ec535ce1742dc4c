"""A poisoned topic: good records all arrive, bad ones are kept, counted and named."""

import json
import uuid
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = pytest.mark.integration


def _event(number: int, table: str = "t", **columns: object) -> bytes:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": table, "lsn": number}
    row = {"id": number, "text": f"good {number}", "amount": number, **columns}
    return json.dumps({"before": None, "after": row, "source": source, "op": "c"}).encode()


def _key(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


def _claim(number: int, **source: str) -> bytes:
    event = json.loads(_event(number))
    event["source"].update(source)
    return json.dumps(event).encode()


POISON: dict[str, bytes] = {
    "truncated": _event(9001, "p")[:-20],
    "wrong type": _event(9002, "p", amount={"not": "a number"}),
    "null key": _event(9003, "p", id=None),
    "huge": _event(9004, "p", text="x" * 300_000),
    "invalid UTF-8": _event(9005, "p").replace(b"good", b"g\xff\xfed"),
    "not JSON": b"\x00\x01\x02 what is this",
    "an array": b"[1, 2, 3]",
    "unknown op": _event(9008, "p").replace(b'"op": "c"', b'"op": "?"'),
    "empty": b"",
}
FORGED = {
    "another database": _claim(1, db="evil"),
    "the dead letters": _claim(2, table="ingestd_dead_letters"),
    "2,100 columns": _event(3, **{f"c{number}": number for number in range(2_100)}),
    "a key that does not fit": _event(4, id="x"),
    "a table of 2,100 columns": _claim(5, table="wide").replace(
        b'"after": {', b'"after": {' + b", ".join(b'"c%d": 1' % n for n in range(2_100)) + b", "
    ),
    "a name with a mark": _claim(6, table="it?em"),
    "the same name": _claim(7, table="it?em"),
    "a name that is the same in the lake": _claim(8, table="it*em"),
}


def test_good_records_arrive_and_bad_ones_are_dead_letters_once(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """Poisoned records at the start, and forged ones while the daemon runs."""
    prefix, warehouse = f"p{uuid.uuid4().hex[:8]}", tmp_path / "warehouse"
    poisoned, forged = f"{prefix}.s.p", f"{prefix}.s.t"
    bad_values: dict[int, bytes] = {}
    records: list[tuple[bytes | None, bytes | None]] = []
    for number, bad in enumerate(POISON.values()):
        numbers = range(10 * number, 10 * number + 10)
        records += [(_key(n), _event(n, "p")) for n in numbers]
        bad_values[len(records)] = bad
        records.append((_key(9001 + number), bad))
    good = [(_key(number), _event(number)) for number in range(20)]
    broker.create_topic(poisoned, 1)
    broker.create_topic(forged, 1)
    types = {"tables": {"p": {"schema": {"column-types": {"amount": "BIGINT"}}}}}
    limits = {"processing": {"max-record-bytes": "256kb"}}
    config = pipeline(tmp_path, broker.bootstrap, rf"{prefix}\..*", **types, **limits)
    produce(broker, poisoned, records)
    produce(broker, forged, good[:10])
    with run_daemon(config, tmp_path) as daemon:
        reading, first = Watched(daemon, "shop"), len(records) + 10
        reading.await_offsets(first)
        produce(broker, forged, [(_key(1), value) for value in FORGED.values()])
        produce(broker, forged, good[10:])
        reading.await_offsets(first + len(FORGED) + 10)
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail(80)

    rows = oracle.read(warehouse, DATABASE, "p")
    assert sorted(row["id"] for row in rows) == list(range(10 * len(POISON)))
    rows = oracle.read(warehouse, DATABASE, "t")
    assert sorted(row["id"] for row in rows) == list(range(20))
    rows = oracle.read(warehouse, DATABASE, "it_em")
    assert sorted(row["id"] for row in rows) == [6, 7]

    dead_letters = oracle.read(warehouse, DATABASE, "ingestd_dead_letters")
    of_poison = [row for row in dead_letters if row["topic"] == poisoned]
    assert sorted(row["offset"] for row in of_poison) == sorted(bad_values)
    for row in of_poison:
        assert row["value"] == bad_values[row["offset"]].hex()
        assert row["reason"]
        assert row["message"]
    assert {
        row["offset"]: (row["stage"], row["reason"])
        for row in dead_letters
        if row["topic"] == forged
    } == {
        10: ("route", "table-taken"),
        11: ("route", "reserved-table"),
        12: ("schema", "refused-change"),
        13: ("cast", "wrong-type"),
        14: ("schema", "refused-change"),
        17: ("route", "table-taken"),
    }
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line[:1] == "{"]
    logged = {
        line["offset"] for line in lines if line.get("topic") == poisoned and "offset" in line
    }
    assert set(bad_values) <= logged, "each bad record is logged with its coordinates"
    assert oracle.fsck(warehouse, DATABASE, "ingestd_dead_letters") == []

"""A poisoned topic: good records all arrive, bad ones are kept, counted and named."""

import json
import uuid
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = pytest.mark.integration


def _event(number: int, **columns: object) -> bytes:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t", "lsn": number}
    row = {"id": number, "text": f"good {number}", "amount": number, **columns}
    return json.dumps({"before": None, "after": row, "source": source, "op": "c"}).encode()


def _key(number: int) -> bytes:
    return json.dumps({"id": number}).encode()


def _poison() -> dict[str, tuple[bytes | None, bytes | None]]:
    return {
        "truncated": (_key(9001), _event(9001)[:-20]),
        "wrong type": (_key(9002), _event(9002, amount={"not": "a number"})),
        "null key": (_key(9003), _event(9003, id=None)),
        "huge": (_key(9004), _event(9004, text="x" * 300_000)),
        "invalid UTF-8": (_key(9005), _event(9005).replace(b"good", b"g\xff\xfed")),
        "not JSON": (_key(9006), b"\x00\x01\x02 what is this"),
        "an array": (_key(9007), b"[1, 2, 3]"),
        "unknown op": (_key(9008), _event(9008).replace(b'"op": "c"', b'"op": "?"')),
        "empty": (_key(9009), b""),
    }


def test_good_records_arrive_and_bad_ones_are_kept_once(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = f"p{uuid.uuid4().hex[:8]}.s.t"
    broker.create_topic(topic, 1)
    records: list[tuple[bytes | None, bytes | None]] = []
    bad_offsets: dict[int, bytes | None] = {}
    for number, (name, bad) in enumerate(_poison().items()):
        records += [(_key(10 * number + i), _event(10 * number + i)) for i in range(10)]
        bad_offsets[len(records)] = bad[1]
        assert name
        records.append(bad)
    produce(broker, topic, records)
    types = {"tables": {"t": {"schema": {"column-types": {"amount": "BIGINT"}}}}}
    limits = {"processing": {"max-record-bytes": "256kb"}}
    config = pipeline(tmp_path, broker.bootstrap, topic.replace(".", r"\."), **types, **limits)
    daemon = catch_up(config, tmp_path)
    catch_up(config, tmp_path)

    rows = oracle.read(tmp_path / "warehouse", DATABASE, "t")
    assert sorted(row["id"] for row in rows) == list(range(10 * len(bad_offsets)))
    dead_letters = oracle.read(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters")
    assert sorted(dead_letter["offset"] for dead_letter in dead_letters) == sorted(bad_offsets)
    for dead_letter in dead_letters:
        wanted = bad_offsets[dead_letter["offset"]]
        assert dead_letter["value"] == (None if wanted is None else wanted.hex())
        assert dead_letter["topic"] == topic
        assert dead_letter["reason"]
        assert dead_letter["message"]
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line[:1] == "{"]
    named = {line["offset"] for line in lines if line.get("topic") == topic and "offset" in line}
    assert set(bad_offsets) <= named, "each bad record is logged with its coordinates"
    assert oracle.fsck(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters") == []


def _claim(number: int, **source: str) -> bytes:
    event = json.loads(_event(number))
    event["source"].update(source)
    return json.dumps(event).encode()


def test_forged_events_end_no_pipeline(tmp_path: Path, broker: DevBroker, oracle: Oracle) -> None:
    topic = f"f{uuid.uuid4().hex[:8]}.s.t"
    broker.create_topic(topic, 1)
    config = pipeline(tmp_path, broker.bootstrap, topic.replace(".", r"\."))
    good = [(_key(number), _event(number)) for number in range(20)]
    forged = {
        "another database": _claim(1, db="evil"),
        "the dead letters": _claim(2, table="ingestd_dead_letters"),
        "2,100 columns": _event(3, **{f"c{number}": number for number in range(2_100)}),
        "a key that does not fit": _event(4, id="x"),
    }
    produce(broker, topic, good[:10])
    catch_up(config, tmp_path)
    produce(broker, topic, [(_key(1), value) for value in forged.values()])
    wide = _claim(5, table="wide")
    wide = wide.replace(b'"after": {', b'"after": {' + b", ".join(
        b'"c%d": 1' % number for number in range(2_100)) + b", ")  # fmt: skip
    twins = [_claim(6, table="it?em"), _claim(7, table="it?em"), _claim(8, table="it*em")]
    produce(broker, topic, [(_key(1), value) for value in (wide, *twins)])
    produce(broker, topic, good[10:])
    catch_up(config, tmp_path)

    rows = oracle.read(tmp_path / "warehouse", DATABASE, "t")
    assert sorted(row["id"] for row in rows) == list(range(20))
    assert sorted(row["id"] for row in oracle.read(tmp_path / "warehouse", DATABASE, "it_em")) == [
        6,
        7,
    ]
    dead_letters = oracle.read(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters")
    assert {
        dead_letter["offset"]: (dead_letter["stage"], dead_letter["reason"])
        for dead_letter in dead_letters
    } == {
        10: ("route", "table-taken"),
        11: ("route", "reserved-table"),
        12: ("schema", "refused-change"),
        13: ("cast", "wrong-type"),
        14: ("schema", "refused-change"),
        17: ("route", "table-taken"),
    }
    assert oracle.fsck(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters") == []

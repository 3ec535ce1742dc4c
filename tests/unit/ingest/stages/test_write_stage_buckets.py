"""Both stages on tables whose keys move between partitions, or whose rows wait for a bucket."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from ingestd.errors import UnsupportedError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.stages import write_stage
from ingestd.paimon.table.cross_partition import assigner as cross_partition
from ingestd.paimon.table.cross_partition.index_cache import IndexCache
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    INSERT,
    UNAVAILABLE,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    record,
)

ORDERS = "lake.orders"
ASSIGNERS = "dynamic-bucket.assigner-parallelism"
POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "2"}
Row = dict[str, Any]

pytestmark = pytest.mark.usefixtures("json_changes")


@pytest.fixture(autouse=True)
def own_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = IndexCache(1 << 20)
    monkeypatch.setattr(cross_partition, "INDEX_CACHE", cache)
    monkeypatch.setattr(write_stage, "INDEX_CACHE", cache)


def _rig(
    slots: int = 1, keys: tuple[str, ...] = ("id",), options: Mapping[str, str] | None = None
) -> Rig:
    settings = TableSettings(primary_keys=keys, partition_keys=("day",), options=options or {})
    return Rig(settings={"orders": settings}, slots=slots)


def _changes(rng: random.Random, rows: dict[int, Row], count: int) -> list[bytes]:
    """Random changes of 30 keys, as a source sends them; `rows` is the table they make."""
    records = []
    for _ in range(count):
        key, day = rng.randrange(30), rng.choice(["d0", "d1", "d2", None])
        old, new = rows.get(key), {"id": key, "day": day, "n": rng.randrange(1000)}
        if old is not None and rng.random() < 0.3:
            gone = rng.choice([old, {"id": key, "day": None, "n": None}])
            records.append(record(Change(gone, DELETE)))
            del rows[key]
            continue
        changes = [Change(new, INSERT if old is None else UPDATE_AFTER)]
        if old is not None and rng.random() < 0.5:
            changes.insert(0, Change(old, UPDATE_BEFORE))
        records.append(record(*changes))
        rows[key] = new
    return records


def _by_key(rows: Mapping[int, Row]) -> list[Row]:
    return sorted(({"id": r["id"], "day": r["day"], "n": r["n"]} for r in rows.values()), key=repr)


@pytest.mark.parametrize("assigners", ["1", "3"])
@pytest.mark.parametrize("slots", [1, 4])
def test_keys_are_unique_over_all_partitions_whatever_the_slots(slots: int, assigners: str) -> None:
    rig = _rig(slots, options={ASSIGNERS: assigners})
    rng, rows = random.Random(slots), dict[int, Row]()
    for _ in range(5):
        rig.produce(*_changes(rng, rows, 25))
        rig.run()
        assert rig.rows("orders", "id", "day", "n") == _by_key(rows)


def _lookups(rig: Rig, *keys: int) -> Mapping[str, int]:
    """The lookups of indexes of a batch with such keys."""
    rig.produce(*(record(Change({"id": key, "day": "a", "n": 0})) for key in keys))
    return rig.run().counts.index_lookups


@pytest.mark.parametrize("keys", [("id",), ("id", "day")], ids=["all partitions", "one partition"])
def test_lookups_of_indexes_are_counted_by_what_the_process_had(keys: tuple[str, ...]) -> None:
    rig = _rig(keys=keys)
    assert _lookups(rig, 1) == {}
    assert _lookups(rig, 2) == {"hit": 1}
    cross_partition.INDEX_CACHE.limit(0)
    write_stage.HASH_CACHE.limit(0)
    assert _lookups(rig, 3) == {"miss": 1}
    assert _lookups(rig, 3) == {"hit": 1}


def test_a_batch_that_runs_again_places_rows_as_if_it_had_not_run() -> None:
    rig, rng, rows = _rig(2), random.Random(3), dict[int, Row]()
    for _ in range(4):
        rig.produce(*_changes(rng, rows, 25))
        # The first try is lost; then the process, with all that it kept, or not.
        rig.round(rig.context(), rig.ranges())
        if rng.random() < 0.5:
            cross_partition.INDEX_CACHE.limit(0)
        rig.run()
        assert rig.rows("orders", "id", "day", "n") == _by_key(rows)


def test_partial_updates_of_a_key_meet_where_its_first_row_was() -> None:
    rig = _rig(2, options={"merge-engine": "partial-update"})
    rig.produce(record(Change({"id": 1, "day": "a", "n": 1, "m": None})))
    rig.produce(record(Change({"id": 2, "day": "b", "n": None, "m": 2})))
    rig.run()
    rig.produce(record(Change({"id": 1, "day": "b", "n": None, "m": 5})))
    rig.produce(record(Change({"id": 2, "day": None, "n": 7, "m": None})))
    rig.run()
    assert rig.rows("orders", "id", "day", "n", "m") == [
        {"id": 1, "day": "a", "n": 1, "m": 5},
        {"id": 2, "day": "b", "n": 7, "m": 2},
    ]


def test_a_truncate_forgets_where_keys_were() -> None:
    rig = _rig(1)
    rig.produce(*(record(Change({"id": n, "day": "a", "n": 0}, position=n)) for n in range(5)))
    rig.run()
    rig.produce(record(Change({}, truncate=True, position=50)))
    rig.produce(record(Change({"id": 1, "day": "b", "n": 1}, position=60)))
    rig.run()
    rig.produce(record(Change({"id": 1, "day": "c", "n": 2}, UPDATE_AFTER, position=70)))
    rig.run()
    assert rig.rows("orders", "id", "day", "n") == [{"id": 1, "day": "c", "n": 2}]


def test_values_left_out_are_found_in_the_partition_that_the_key_had() -> None:
    rig = _rig(2, options={ASSIGNERS: "2"})
    for n in range(6):
        day = None if n == 3 else f"d{n % 2}"
        rig.produce(record(Change({"id": n, "day": day, "note": f"note {n}"})))
    rig.run()
    for n in range(6):
        change = Change({"id": n, "day": "moved", "note": UNAVAILABLE}, UPDATE_AFTER)
        rig.produce(record(change))
    rig.run()
    wanted = [{"id": n, "day": "moved", "note": f"note {n}"} for n in range(6)]
    assert rig.rows("orders", "id", "day", "note") == wanted


def test_waiting_rows_are_moved_in_the_order_of_the_source() -> None:
    rig = _rig(3, ("id", "day"), POSTPONED)
    rng, rows = random.Random(9), dict[tuple[int, str], Row]()
    for batch in range(6):
        for number in range(25):
            key = (rng.randrange(12), rng.choice(["a", "b"]))
            if key in rows and rng.random() < 0.3:
                rig.produce(record(Change(rows.pop(key), DELETE)))
                continue
            row = {"id": key[0], "day": key[1], "n": batch * 100 + number}
            rig.produce(record(Change(row, UPDATE_AFTER if key in rows else INSERT)))
            rows[key] = row
        rig.run()
        if batch % 3 == 2:
            table = rig.tables[ORDERS]
            move_postponed(table, "mover", state=load_state(table), now_ms=1)
            rig.states[ORDERS] = load_state(table)
            found = rig.rows("orders", "id", "day", "n")
            assert found == sorted(rows.values(), key=repr)


def test_changes_of_one_key_from_several_partitions_wait_in_the_order_of_their_positions() -> None:
    rig = _rig(2, ("id", "day"), POSTPONED)
    rig.overrides = {"write_buffer_size": 1}
    for n, partition in enumerate([0, 1, 0, 1, 0]):
        row = {"id": 1, "day": "a", "n": n}
        rig.produce(record(Change(row, UPDATE_AFTER, position=n * 10)), partition=partition)
    rig.run()
    table = rig.tables[ORDERS]
    move_postponed(table, "mover", state=load_state(table), now_ms=1)
    assert rig.rows("orders", "id", "n") == [{"id": 1, "n": 4}]


def test_values_left_out_are_not_guessed_while_older_rows_wait() -> None:
    rig = _rig(1, ("id", "day"), POSTPONED)
    rig.produce(record(Change({"id": 1, "day": "a", "note": "x"})))
    rig.run()
    rig.produce(record(Change({"id": 1, "day": "a", "note": UNAVAILABLE}, UPDATE_AFTER)))
    with pytest.raises(UnsupportedError, match=r"lake\.orders.*note.*REPLICA IDENTITY FULL"):
        rig.run()

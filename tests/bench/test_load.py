"""The load is the same on every machine, and ends in the table that it says it ends in."""

import hashlib
import json
from dataclasses import replace

from bench.load import KEY, SCHEMA, Load, events, expected

SMALL = Load(events=5_000, keys=500)


def test_the_bytes_of_a_load_never_change() -> None:
    digest = hashlib.sha256()
    for event in events(SMALL):
        digest.update(b"%d %s %s\n" % (event.partition, event.key, event.value))
    assert digest.hexdigest() == "0435b6198f887c6e57ea5d721af082cd9cbae5b40339dbedd059b9a8df308254"


def test_replaying_the_events_gives_the_expected_rows() -> None:
    rows: dict[int, dict[str, object]] = {}
    for event in events(SMALL):
        change = json.loads(event.value)
        key = json.loads(event.key)[KEY]
        assert change["before"] == rows.pop(key, None)
        if change["after"] is not None:
            rows[key] = change["after"]
    wanted = [{**rows[key], "amount": rows[key]["amount"]} for key in sorted(rows)]
    table = expected(SMALL)
    assert table.schema == SCHEMA
    got = [{**row, "amount": str(row["amount"])} for row in table.to_pylist()]
    assert got == wanted


def test_changing_tables_get_a_column_in_the_middle() -> None:
    load = replace(SMALL, tables=3, changing=True)
    rows: dict[int, dict[str, object]] = {}
    for event in events(load):
        key, value = json.loads(event.key)["payload"][KEY], json.loads(event.value)
        change = value["payload"]
        before = rows.pop(key, None)
        if before is not None and load.changed(event.number):
            before = {"channel": None, **before}
        assert change["before"] == before
        assert change["source"]["table"] == load.table_of(key)
        if change["after"] is not None:
            rows[key] = change["after"]
            columns = [field["field"] for field in value["schema"]["fields"][1]["fields"]]
            assert list(change["after"]) == columns
    table = expected(load)
    assert table.schema == load.schema
    last = [{"@table": load.table_of(key), "channel": None, **rows[key]} for key in sorted(rows)]
    assert [{**row, "amount": str(row["amount"])} for row in table.to_pylist()] == last
    assert table["channel"].null_count


def test_a_later_load_goes_on_where_the_first_one_stopped() -> None:
    whole = list(events(Load(events=3_000, keys=500)))
    second = list(events(Load(events=1_000, start=2_000, keys=500)))
    assert whole[2_000:] == second


def test_a_snapshot_reads_every_key_once() -> None:
    operations = [
        json.loads(event.value)["op"] for event in events(Load(events=120, snapshot=100, keys=150))
    ]
    assert operations[:100] == ["r"] * 100
    assert "r" not in operations[100:]


def test_all_operations_occur_in_about_their_shares() -> None:
    operations = [json.loads(event.value)["op"] for event in events(Load(events=5_000, keys=5_000))]
    assert 0.5 < operations.count("c") / 5_000 < 0.6
    assert 0.35 < operations.count("u") / 5_000 < 0.45
    assert 0.03 < operations.count("d") / 5_000 < 0.07

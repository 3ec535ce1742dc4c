from collections import Counter

from ingestd.dev.workload import KEYS, TABLES, Workload, column_types, iso_micros, printed


def test_the_same_seed_gives_the_same_history_and_another_does_not() -> None:
    first = list(Workload(events=500, seed=3).changes())
    assert first == list(Workload(events=500, seed=3).changes())
    assert first != list(Workload(events=500, seed=4).changes())


def test_a_longer_history_only_adds_to_a_shorter_one_before_the_new_column() -> None:
    short = list(Workload(events=400).changes())
    long = list(Workload(events=800).changes())
    assert long[:200] == short[:200]


def test_both_tables_see_inserts_updates_and_deletes() -> None:
    kinds = Counter((c.table, c.operation) for c in Workload(events=3000).changes())
    assert all(kinds[table, operation] > 20 for table in TABLES for operation in "cud")


def test_a_key_is_inserted_once_and_changed_only_while_it_lives() -> None:
    live: set[tuple[str, int]] = set()
    ever: set[tuple[str, int]] = set()
    for change in Workload(events=3000).changes():
        key = change.table, change.key
        assert (key in live) == (change.operation != "c")
        if change.operation == "c":
            assert key not in ever
            ever.add(key)
            live.add(key)
        if change.operation == "d":
            live.remove(key)


def test_orders_gain_a_column_half_way() -> None:
    changes = [c for c in Workload(events=1000).changes() if c.table == "orders"]
    has = [any(column.name == "coupon" for column in c.columns) for c in changes]
    first = has.index(True)
    assert changes[first].number >= 500
    assert not any(has[:first])
    assert all(has[first:])
    assert any(c.row and c.row.get("coupon") for c in changes)


def test_expected_rows_are_the_last_state_of_each_key_that_was_not_deleted() -> None:
    workload = Workload(events=2000)
    expected = workload.expected()
    for table, key in KEYS.items():
        deleted = {c.key for c in workload.changes() if c.table == table and c.row is None}
        made = {c.key for c in workload.changes() if c.table == table}
        assert [row[key] for row in expected[table]] == sorted(made - deleted)
        assert all(row.keys() == {c.name for c in TABLES[table]} for row in expected[table])


def test_values_are_printed_as_readers_print_them() -> None:
    amount = next(c for c in TABLES["orders"] if c.name == "amount")
    created = next(c for c in TABLES["orders"] if c.name == "created_at")
    registered = next(c for c in TABLES["customers"] if c.name == "registered")
    assert printed(amount, -5) == "-0.05"
    assert printed(amount, 123456) == "1234.56"
    assert printed(created, 1) == "1970-01-01T00:00:00.000001Z"
    assert printed(registered, 31) == "1970-02-01"
    assert iso_micros(1_709_210_096_789_012) == "2024-02-29T12:34:56.789012"


def test_types_need_declaring_only_where_plain_json_cannot_show_them() -> None:
    assert column_types("orders").keys() == {"amount", "created_at", "updated_at"}

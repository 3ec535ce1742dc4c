"""The judge of the replayed database must itself be able to say no."""

from collections import Counter
from typing import Any

import pytest

from tests.support import canonical, canonical_mysql, corpus, state
from tests.support.connect_cells import sent_by_connect

LTZ = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
ARRAY_OF_DECIMAL = {"type": "ARRAY", "element": "DECIMAL(10, 2)"}
COUPON_TYPES = {"code": "STRING", "pct": "DECIMAL(5, 2)", "valid": "STRING", "meta": "STRING"}


@pytest.mark.parametrize(
    ("database_type", "wanted", "paimon_type", "got"),
    [
        ("integer", 5, "INT NOT NULL", 5),
        ("character(5)", "ab", "STRING", "ab   "),
        ("real", 0.1, "DOUBLE", 0.10000000149011612),
        ("double precision", "NaN", "DOUBLE", "NaN"),
        ("numeric(5,2)", "1.50", "DECIMAL(5, 2)", "1.50"),
        ("numeric", "13.345", "STRING", "13.3450"),
        ("numeric", "-2.5", "STRING", '{"scale":1,"value":"5w=="}'),
        ("money", "-$1,234.56", "DECIMAL(19, 2)", "-1234.56"),
        ("date", "0001-01-01", "DATE", "0001-01-01"),
        ("date", "infinity", "DATE", "-5877611-06-21"),
        ("time without time zone", "24:00:00.000000", "BIGINT", 86400000000),
        ("time(3) without time zone", "01:02:03.456000", "TIME(3)", "01:02:03.456"),
        ("time with time zone", "01:02:03.456+02", "STRING", "23:02:03.456Z"),
        (
            "timestamp(0) without time zone",
            "1969-12-31T23:59:59.000000",
            "TIMESTAMP(3)",
            "1969-12-31T23:59:59.000",
        ),
        (
            "timestamp with time zone",
            "2024-02-29T07:04:56.789012Z",
            LTZ,
            "2024-02-29T07:04:56.789012Z",
        ),
        ("interval", "P-1Y-2DT-0.000001S", "BIGINT", -31730400000001),
        ("interval", "P178000000Y", "BIGINT", 2**63 - 1),
        ("bit(1)", "1", "BOOLEAN", True),
        ("bit varying(12)", "111111111111", "BYTES", "0fff"),
        ("jsonb", '{"a": 1.10}', "STRING", '{"a":1.1}'),
        ("inet", "10.0.0.1/32", "STRING", "10.0.0.1"),
        ("point", "(1.5,-2)", "STRING", '{"x":1.5,"y":-2.0,"srid":null}'),
        ("numeric(10,2)[]", ["1.10", None], ARRAY_OF_DECIMAL, ["1.10", None]),
    ],
)
def test_equal_values_are_equal_in_every_way_of_writing(
    database_type: str, wanted: object, paimon_type: object, got: object
) -> None:
    assert canonical.same(database_type, wanted, paimon_type, got)


@pytest.mark.parametrize(
    ("database_type", "wanted", "paimon_type", "got"),
    [
        ("integer", 1, "BOOLEAN", True),
        ("integer", 1, "INT", None),
        ("text", None, "STRING", ""),
        ("text", "ab", "STRING", "ab   "),
        ("double precision", 0.1, "DOUBLE", 0.10000000149011612),
        ("numeric(5,2)", "1.50", "DECIMAL(5, 2)", "1.51"),
        ("date", "2024-02-29", "DATE", "2024-03-01"),
        ("time without time zone", "00:00:00.000000", "BIGINT", 86400000000),
        (
            "timestamp without time zone",
            "2024-02-29T12:34:56.789012",
            "TIMESTAMP(6)",
            "2024-02-29T12:34:56.789000",
        ),
        ("interval", "P2D", "BIGINT", 2),
        ("bit(8)", "10101010", "BYTES", "55"),
        ("text[]", ["a"], {"type": "ARRAY", "element": "STRING"}, ["a", "b"]),
    ],
)
def test_different_values_are_distinguished(
    database_type: str, wanted: object, paimon_type: object, got: object
) -> None:
    assert not canonical.same(database_type, wanted, paimon_type, got)


def coupon() -> dict[str, object]:
    return dict(state.database_tables()["shop.coupons"].rows[0])


def test_the_database_itself_passes() -> None:
    assert state.compare("shop.coupons", [coupon()], COUPON_TYPES) == []


def test_a_wrong_cell_a_missing_row_and_a_second_row_are_found() -> None:
    wrong = {**coupon(), "pct": "12.00"}
    assert "pct" in state.compare("shop.coupons", [wrong], COUPON_TYPES)[0]
    assert "missing" in state.compare("shop.coupons", [], COUPON_TYPES)[0]
    assert "2 rows" in state.compare("shop.coupons", [coupon(), coupon()], COUPON_TYPES)[0]
    other = {**coupon(), "code": "NONE"}
    assert "left over" in state.compare("shop.coupons", [coupon(), other], COUPON_TYPES)[0]
    absent = {name: value for name, value in coupon().items() if name != "meta"}
    assert "meta" in state.compare("shop.coupons", [absent], COUPON_TYPES)[0]


def test_a_listed_loss_may_hold_what_the_stream_said_and_nothing_else() -> None:
    table = state.database_tables()["shop.inventory"]
    types = {"warehouse": "STRING", "sku": "STRING", "qty": "INT", "updated": LTZ}

    def with_quantity(value: object) -> list[str]:
        rows = [
            {**row, "qty": value} if (row["sku"], row["warehouse"]) == ("SKU00001", "west") else row
            for row in table.rows
        ]
        return state.compare("shop.inventory", rows, types)

    assert with_quantity(None) == []
    assert with_quantity(0) == []
    assert len(with_quantity(1)) == 1


def test_repeats_of_a_table_without_key_are_allowed_only_as_often_as_they_were_sent() -> None:
    rows = [{**row, "at": row["at"]} for row in state.database_tables()["shop.audit_log"].rows]
    types = {"at": LTZ, "who": "STRING", "what": "STRING"}
    repeats = corpus.repeated_inserts("json-schema")["shop.audit_log"]
    assert repeats.total() == 3
    assert state.compare("shop.audit_log", rows, types) == []
    assert state.compare("shop.audit_log", [*rows, rows[0]], types, repeats=repeats)
    assert state.compare("shop.audit_log", rows[1:], types, repeats=Counter())


def test_the_stream_folds_to_the_keys_of_the_database() -> None:
    folded = corpus.folded("json")
    for name, table in state.database_tables().items():
        if table.key:
            assert len(folded[name]) == len(table.rows), name


def test_wire_values_may_be_kept_as_text_but_not_changed() -> None:
    wanted = {"[1]": {"id": 1, "price": 2.5, "raw": {"scale": 1, "value": "Ag=="}}}
    kept = [{"id": 1, "price": "2.5", "raw": '{"scale":1,"value":"Ag=="}'}]
    assert state.compare_as_it_came("t", ["id"], wanted, kept) == []
    changed = [{"id": 1, "price": "2.6", "raw": None}]
    assert len(state.compare_as_it_came("t", ["id"], wanted, changed)) == 2


@pytest.mark.parametrize(
    ("kind", "wanted", "paimon", "got", "equal"),
    [
        ("bit(9)", 347, "BYTES", "015b", True),
        ("bit(9)", 347, "BYTES", "5b01", False),
        ("bigint(20) unsigned", 2**64 - 1, "BIGINT", -1, True),
        ("bigint(20) unsigned", 2**64 - 1, "DECIMAL(20, 0)", str(2**64 - 1), True),
        ("bigint(20) unsigned", 1, "BIGINT", 1 - 2**64, False),
        ("time(3)", "-01:00:00.500000", "BIGINT", -3_600_500_000, True),
        ("time(3)", "838:59:59.000000", "BIGINT", 3_020_399_000_001, False),
        ("enum('a,b')", "a,b", "STRING", "a\\,b", True),
        ("varbinary(9)", "00ff", "BYTES", "00fe", False),
    ],
)
def test_values_of_mariadb(kind: str, wanted: Any, paimon: str, got: Any, equal: bool) -> None:
    assert canonical_mysql.same(kind, wanted, paimon, got) is equal


def test_mode_connect_may_cut_times_and_nothing_else() -> None:
    same = sent_by_connect(canonical.same)
    kind, wanted = "timestamp without time zone", "2026-01-02T03:04:05.678901"
    assert same(kind, wanted, "TIMESTAMP(3)", "2026-01-02T03:04:05.678")
    assert not same(kind, wanted, "TIMESTAMP(3)", "2026-01-02T03:04:05.679")
    assert not same(kind, wanted, "TIMESTAMP(3)", None)
    assert not same("bytea", "00ff", "STRING", "00fe")
    assert not same("interval", "PT1S", "STRING", "P0Y0M0DT0H0M2S")


def test_mode_connect_has_no_time_beyond_a_day() -> None:
    same = sent_by_connect(canonical_mysql.same)
    assert same("time(3)", "838:59:59.000000", "TIME(3)", None)
    assert not same("time(3)", "23:59:59.000000", "TIME(3)", None)

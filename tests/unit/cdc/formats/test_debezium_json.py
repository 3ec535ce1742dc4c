"""What records become: row kinds, keys, positions, control messages, and columns that change."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ingestd.cdc.base import (
    ChangeBatch,
    DataFormat,
    Decoded,
    RecordChunk,
    SourceTable,
    Truncate,
    load_data_format,
    shared_data_format,
)
from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import RowKind
from tests.support.change_events import TABLE, chunk, event, field, key, wrapped, wrapped_key


def decode(records: RecordChunk, data_format: DataFormat | None = None) -> Decoded:
    return (data_format or load_data_format("debezium-json")).decode(records, {}, {})


def only_batch(decoded: Decoded) -> ChangeBatch:
    assert decoded.rejected == []
    [batch] = decoded.batches
    return batch


def rows(batch: ChangeBatch) -> list[dict[str, object]]:
    return batch.columns.to_pylist()


def test_operations_become_row_kinds() -> None:
    ids = [key(id=n) for n in range(4)]
    values = [
        event("r", {"id": 0, "v": "a"}, snapshot="first"),
        event("c", {"id": 1, "v": "b"}),
        event("u", {"id": 2, "v": "c"}),
        event("d", before={"id": 3, "v": ""}),
    ]
    batch = only_batch(decode(chunk(values, ids, first=70)))
    assert batch.source == TABLE
    assert batch.primary_keys == ("id",)
    assert batch.row_kind.tolist() == [
        RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE
    ]  # fmt: skip
    assert batch.offset.tolist() == [70, 71, 72, 73]
    assert batch.snapshot_row.tolist() == [True, False, False, False]
    assert rows(batch)[:3] == [{"id": 0, "v": "a"}, {"id": 1, "v": "b"}, {"id": 2, "v": "c"}]


def test_delete_takes_the_key_and_nothing_of_the_before_image() -> None:
    invented = {"id": 3, "name": "", "created": "1970-01-01T00:00:00Z"}
    values = [event("c", {"id": 1, "name": "x", "created": "y"}), event("d", before=invented)]
    batch = only_batch(decode(chunk(values, [key(id=1), key(id=3)])))
    assert rows(batch)[1] == {"id": 3, "name": None, "created": None}


def test_delete_without_key_takes_the_before_image() -> None:
    values = [event("c", {"a": 1, "b": "x"}), event("d", before={"a": 1, "b": "x"})]
    batch = only_batch(decode(chunk(values)))
    assert batch.primary_keys == ()
    assert rows(batch) == [{"a": 1, "b": "x"}] * 2
    assert batch.row_kind.tolist() == [RowKind.INSERT, RowKind.DELETE]


def test_update_that_moves_a_row_deletes_the_old_key_first() -> None:
    values = [
        event("u", {"id": 1, "v": "same"}, before={"id": 1, "v": "old"}),
        event("u", {"id": 9, "v": "moved"}, before={"id": 2, "v": "old"}, lsn=5),
        event("u", {"id": 3, "v": "last"}, before=None),
    ]
    batch = only_batch(decode(chunk(values, [key(id=1), key(id=9), key(id=3)])))
    assert rows(batch) == [
        {"id": 1, "v": "same"},
        {"id": 2, "v": None},
        {"id": 9, "v": "moved"},
        {"id": 3, "v": "last"},
    ]
    assert batch.row_kind.tolist() == [2, 3, 2, 2]
    assert batch.offset.tolist() == [0, 1, 1, 2]
    assert batch.position.tolist() == [1000, 5, 5, 1000]


def test_primary_key_keeps_the_order_of_the_message_key() -> None:
    batch = only_batch(decode(chunk([event("c", {"a": 1, "b": 2, "c": 3})], [b'{"c": 3, "a": 1}'])))
    assert batch.primary_keys == ("c", "a")


def test_key_fields_that_the_row_lacks_come_from_the_key() -> None:
    values = [event("c", {"v": "x"}), event("c", {"v": "y", "id": 2})]
    batch = only_batch(decode(chunk(values, [key(id=1), key(id=2)])))
    assert [row["id"] for row in rows(batch)] == [1, 2]


def test_tombstones_and_messages_without_rows_are_control() -> None:
    logical = {"op": "m", "source": {"table": ""}, "message": {"prefix": "p", "content": ""}}
    values = [
        None,
        b"null",
        b'{"schema":null,"payload":null}',
        json.dumps(logical).encode(),
        b'{"ts_ms":1}',
        b'{"status":"BEGIN","id":"7:1","event_count":null,"data_collections":null,"ts_ms":1}',
        b'{"status":"END","id":"7:1","event_count":2,"data_collections":[],"ts_ms":1}',
        b'{"source":{"table":null},"databaseName":"d","ddl":"DROP TABLE t","tableChanges":[]}',
    ]
    decoded = decode(chunk(values, [key(id=1)] * len(values)))
    assert decoded == Decoded([], [], [], len(values))


def test_heartbeat_topic_is_control_whatever_it_holds() -> None:
    decoded = decode(chunk([b'{"anything":1}'], topic="__debezium-heartbeat.shop"))
    assert decoded.control == 1


def test_truncate_is_not_a_row() -> None:
    values = [event("t", lsn=44), event("t", table=SourceTable("d", None, "u"), lsn=None)]
    decoded = decode(chunk(values, first=10))
    assert decoded.batches == []
    assert decoded.truncates == [
        Truncate(TABLE, 0, 10, 44), Truncate(SourceTable("d", None, "u"), 0, 11, None)
    ]  # fmt: skip


def test_a_chunk_may_mix_tables_and_keys() -> None:
    other = SourceTable("shopdb", "public", "customers")
    values = [
        event("c", {"id": 1}),
        event("c", {"code": "x"}, table=other),
        event("c", {"id": 2}),
        event("c", {"code": "y"}, table=other),
        event("c", {"id": 3}),
    ]
    keys = [key(id=1), key(code="x"), key(id=2), key(code="y"), None]
    decoded = decode(chunk(values, keys))
    found = [(b.source.table, b.primary_keys, b.offset.tolist()) for b in decoded.batches]
    assert found == [
        ("orders", ("id",), [0, 2]), ("customers", ("code",), [1, 3]), ("orders", (), [4])
    ]  # fmt: skip


def test_tables_and_columns_that_differ_by_case_are_different() -> None:
    upper = SourceTable("shopdb", "public", "Orders")
    values = [event("c", {"id": 1, "ID": "a", "Id": True}), event("c", {"id": 2}, table=upper)]
    decoded = decode(chunk(values))
    assert [batch.source for batch in decoded.batches] == [TABLE, upper]
    assert rows(decoded.batches[0]) == [{"id": 1, "ID": "a", "Id": True}]


def test_new_columns_are_found_in_the_middle_of_a_chunk_and_between_chunks() -> None:
    data_format = load_data_format("debezium-json")
    first = [event("c", {"id": n}) for n in range(900)]
    second = [event("c", {"id": n, "new": f"n{n}"}) for n in range(900)]
    batch = only_batch(decode(chunk(first[:5]), data_format))
    assert batch.columns.column_names == ["id"]
    batch = only_batch(decode(chunk(first + second), data_format))
    assert batch.columns.column("new").to_pylist() == [None] * 900 + [f"n{n}" for n in range(900)]
    batch = only_batch(decode(chunk([event("c", {"id": 1, "newer": 1.5})]), data_format))
    assert rows(batch) == [{"id": 1, "newer": 1.5}]


def test_dropped_column_is_left_out_once_no_row_has_it() -> None:
    data_format = load_data_format("debezium-json")
    decode(chunk([event("c", {"id": 1, "old": "x"})]), data_format)
    batch = only_batch(decode(chunk([event("c", {"id": 2})]), data_format))
    assert batch.columns.column_names == ["id"]
    assert batch.types.keys() == {"id"}


def test_pretty_printed_messages_are_read() -> None:
    values = [
        json.dumps(json.loads(event("c", {"id": n, "t": "a\nb"})), indent=2).encode()
        for n in range(3)
    ]
    assert [row["id"] for row in rows(only_batch(decode(chunk(values))))] == [0, 1, 2]


def test_last_of_two_equal_fields_counts() -> None:
    value = event("c", {"id": 1}).replace(b'"id": 1', b'"id": 1, "id": 2')
    assert rows(only_batch(decode(chunk([value])))) == [{"id": 2}]


def test_size_of_chunks_changes_nothing() -> None:
    values: list[bytes | None] = []
    keys: list[bytes | None] = []
    for n in range(9000):
        op = "crud"[n % 4]
        values.append(event(op, None if op == "d" else {"id": n, "v": n / 4}, before={"id": n}))
        keys.append(key(id=n))
        if op == "d":
            values.append(None)
            keys.append(key(id=n))
    whole = only_batch(decode(chunk(values, keys)))
    data_format = load_data_format("debezium-json")
    parts = [
        only_batch(decode(chunk(values[at : at + 100], keys[at : at + 100], first=at), data_format))
        for at in range(0, len(values), 100)
    ]
    assert [row for part in parts for row in rows(part)] == rows(whole)
    assert np.concatenate([part.offset for part in parts]).tolist() == whole.offset.tolist()
    assert np.concatenate([part.row_kind for part in parts]).tolist() == whole.row_kind.tolist()


def test_schema_of_messages_may_change_inside_a_chunk() -> None:
    narrow, wide = [field("id", "int32")], [field("id", "int64"), field("n", "string")]
    values = [
        wrapped(event("c", {"id": 1}), narrow),
        wrapped(event("c", {"id": 2, "n": "x"}), wide),
    ]
    keys = [wrapped_key(key(id=1), narrow), wrapped_key(key(id=2), narrow)]
    decoded = decode(chunk(values, keys))
    assert decoded.rejected == []
    found = [{name: str(t) for name, t in batch.types.items()} for batch in decoded.batches]
    assert found == [{"id": "INT"}, {"id": "BIGINT", "n": "STRING"}]


def test_unknown_data_format_lists_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="debezium-json"):
        load_data_format("debezium-jsn")


def test_a_source_keeps_its_decoder() -> None:
    first = shared_data_format("debezium-json", "a")
    assert shared_data_format("debezium-json", "a") is first
    assert shared_data_format("debezium-json", "b") is not first
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(shared_data_format, "debezium-json", "a").result() is not first

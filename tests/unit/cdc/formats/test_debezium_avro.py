import json
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from ingestd.cdc.columns.unavailable import BYTES, TEXT
from ingestd.errors import ConfigError, SourceError
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.support.registered import Registered, chunk_of, envelope, event, framed, record

ITEM = SourceTable("inv", "public", "item")
ID = {"name": "id", "type": "int"}
LABEL = {"name": "label", "type": ["null", "string"]}
KEY = record("Key", [ID])


def decode(
    registry: Registered, values: list[Any], keys: list[Any] | None = None, **more: Any
) -> Decoded:
    declared = more.pop("declared", {})
    data_format = load_data_format("debezium-avro", FormatSettings(schemas=registry))
    return data_format.decode(chunk_of(values, keys, **more), {}, {ITEM: declared})


def rows(decoded: Decoded) -> list[tuple[int, int, dict[str, Any]]]:
    """Offset, row kind and cells of all rows."""
    return [
        (int(offset), int(kind), cells)
        for batch in decoded.batches
        for offset, kind, cells in zip(
            batch.offset, batch.row_kind, batch.columns.to_pylist(), strict=True
        )
    ]


def test_inserts_updates_and_deletes_become_rows_with_the_key_of_the_message() -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID, LABEL]),
        event("r", {"id": 1, "label": "a"}, snapshot="first", lsn=5),
        event("c", {"id": 2, "label": "b"}, lsn=6),
        event("u", {"id": 2, "label": None}, lsn=7),
        event("d", None, {"id": 2, "label": "invented"}, lsn=8),
    )
    keys = registry.avro(KEY, *({"id": n} for n in (1, 2, 2, 2)))
    decoded = decode(registry, [*values, None], [*keys, keys[-1]])
    (batch,) = decoded.batches
    assert rows(decoded) == [
        (0, 0, {"id": 1, "label": "a"}),
        (1, 0, {"id": 2, "label": "b"}),
        (2, 2, {"id": 2, "label": None}),
        (3, 3, {"id": 2, "label": None}),
    ]
    assert batch.source == ITEM and batch.primary_keys == ("id",)
    assert batch.position.tolist() == [5, 6, 7, 8]
    assert batch.snapshot_row.tolist() == [True, False, False, False]
    assert decoded.control == 1 and decoded.rejected == []


def test_an_update_that_changes_its_key_is_a_delete_and_a_row() -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID, LABEL]),
        event("u", {"id": 1, "label": "x"}, {"id": 1, "label": TEXT}),
        event("u", {"id": 9, "label": TEXT}, {"id": 2, "label": "b"}),
    )
    keys = registry.avro(KEY, {"id": 1}, {"id": 9})
    decoded = decode(registry, values, keys)
    assert rows(decoded) == [
        (0, 2, {"id": 1, "label": "x"}),
        (1, 3, {"id": 2, "label": None}),
        (1, 0, {"id": 9, "label": None}),
    ]
    assert decoded.batches[0].unavailable["label"].tolist() == [False, False, True]


@pytest.mark.parametrize("images", [False, True])
def test_an_old_key_that_does_not_fit_its_column_rejects_the_update(*, images: bool) -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID]),
        event("c", {"id": 7}),
        event("u", {"id": 2}, {"id": 1000}),
        event("u", {"id": 4}, {"id": 3}),
    )
    keys = registry.avro(KEY, {"id": 7}, {"id": 2}, {"id": 4})
    settings = FormatSettings(schemas=registry, images=images)
    declared = {ITEM: {"id": parse_type("TINYINT")}}
    decoded = load_data_format("debezium-avro", settings).decode(
        chunk_of(values, keys), {}, declared
    )
    arrives = 0 if images else 2
    assert rows(decoded) == [(0, 0, {"id": 7}), (2, 3, {"id": 3}), (2, arrives, {"id": 4})]
    assert [
        (rejected_record.offset, rejected_record.reason) for rejected_record in decoded.rejected
    ] == [(1, "out-of-range")]


def test_without_a_key_a_delete_is_the_whole_row_before_it() -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID, LABEL]),
        event("d", None, {"id": 1, "label": "gone"}),
        event("c", {"id": 2, "label": "b"}),
        event("d"),
        event("u"),
    )
    decoded = decode(registry, values)
    assert rows(decoded) == [(0, 3, {"id": 1, "label": "gone"}), (1, 0, {"id": 2, "label": "b"})]
    assert [
        (rejected_record.offset, rejected_record.reason) for rejected_record in decoded.rejected
    ] == [
        (2, "missing-key"),
        (3, "missing-after"),
    ]
    assert decoded.batches[0].primary_keys == ()


def test_a_key_column_that_the_rows_lack_comes_from_the_key() -> None:
    registry = Registered()
    values = registry.avro(envelope([LABEL]), event("c", {"label": "a"}))
    keys = registry.avro(record("Key", [{"name": "tenant", "type": "string"}]), {"tenant": "t"})
    assert rows(decode(registry, values, keys)) == [(0, 0, {"label": "a", "tenant": "t"})]


def test_truncates_messages_and_unknown_operations_are_distinguished() -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID]),
        event("t", lsn=40),
        event("m"),
        event("x"),
        event("", {"id": 1}),
        event("c", {"id": 1}, table=""),
        event("t", lsn=None),
    )
    decoded = decode(registry, values)
    assert [(t.source, t.offset, t.position) for t in decoded.truncates] == [
        (ITEM, 0, 40),
        (ITEM, 5, None),
    ]
    assert decoded.control == 1 and decoded.batches == []
    assert [(r.offset, r.stage, r.reason) for r in decoded.rejected] == [
        (2, "decode", "unknown-op"),
        (3, "decode", "unknown-op"),
        (4, "decode", "missing-source"),
    ]


@pytest.mark.parametrize("op", [None, "", "cr", "c\0", "C", "é"])
def test_what_is_no_operation_is_named_and_disturbs_no_neighbour(op: str | None) -> None:
    registry = Registered()
    schema: Any = envelope([ID])
    fields = [
        {**field, "type": ["null", "string"]} if field["name"] == "op" else field
        for field in schema["fields"]
    ]
    values = registry.avro(
        {**schema, "fields": fields},
        event("c", {"id": 1}),
        {**event("c", {"id": 2}), "op": op},
        event("t"),
        event("d", None, {"id": 3}),
    )
    decoded = decode(registry, values)
    assert rows(decoded) == [(0, 0, {"id": 1}), (3, 3, {"id": 3})]
    assert [truncate.offset for truncate in decoded.truncates] == [2]
    assert [(r.offset, r.message) for r in decoded.rejected] == [
        (1, f"op of the message value is {op or ''!r}, not one of c, r, u, d, t, m")
    ]


def test_a_refused_change_among_those_of_several_tables_has_its_own_table() -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID, LABEL]),
        event("c", {"id": 1, "label": "a"}),
        event("c", {"id": 2, "label": "b"}, table="other"),
        event("u", None, table="other"),
        event("c", {"id": 3, "label": "c"}, table="third"),
        event("c", {"id": 4, "label": "d"}, table="other"),
        event("u", None),
        event("d", None, {"id": 5, "label": None}),
    )
    decoded = decode(registry, values)
    assert sorted(rows(decoded), key=lambda row: row[0]) == [
        (0, 0, {"id": 1, "label": "a"}),
        (1, 0, {"id": 2, "label": "b"}),
        (3, 0, {"id": 3, "label": "c"}),
        (4, 0, {"id": 4, "label": "d"}),
        (6, 3, {"id": 5, "label": None}),
    ]
    assert [(r.offset, r.source_table) for r in decoded.rejected] == [
        (2, SourceTable("inv", "public", "other")),
        (5, ITEM),
    ]


@pytest.mark.parametrize(
    ("topic", "names", "control"),
    [
        ("__debezium-heartbeat.p", ["ts_ms"], True),
        ("p.transaction", ["status", "id", "event_count"], True),
        ("p", ["source", "ddl", "databaseName"], True),
        ("p.public.item", ["id", "label"], False),
    ],
)
def test_messages_without_an_operation_are_control_or_refused(
    topic: str, names: list[str], *, control: bool
) -> None:
    registry = Registered()
    fields = [{"name": name, "type": "string"} for name in names]
    values = registry.avro(record("Other", fields), dict.fromkeys(names, "1"))
    decoded = decode(registry, values, topic=topic)
    assert decoded.control == control
    assert [rejected_record.reason for rejected_record in decoded.rejected] == (
        [] if control else ["missing-op"]
    )


def test_a_broken_message_costs_no_other() -> None:
    registry = Registered()
    values = registry.avro(
        envelope([ID, LABEL]), *(event("c", {"id": n, "label": "é" * n}) for n in range(1, 40))
    )
    irregular = {
        3: values[3][:-1],
        7: values[7] + b"\0",
        11: values[11][:5] + b"\xff" * 30,
        12: b"{}",
    }
    irregular |= {20: b"", 21: framed(77, b""), 22: values[22].replace("é".encode(), b"\xc3\x28")}
    mixed = [irregular.get(place, value) for place, value in enumerate(values)]
    decoded = decode(registry, mixed)
    assert [offset for offset, _, _ in rows(decoded)] == [
        n for n in range(len(values)) if n not in irregular
    ]
    assert {
        rejected_record.offset: rejected_record.reason for rejected_record in decoded.rejected
    } == {
        **dict.fromkeys((3, 7, 11, 22), "invalid-avro"),
        **dict.fromkeys((12, 20), "no-schema-id"),
        21: "unknown-schema",
    }
    assert all(
        rejected_record.value == mixed[rejected_record.offset]
        for rejected_record in decoded.rejected
    )


def test_keys_that_cannot_be_read_are_refused_as_keys() -> None:
    registry = Registered()
    values = registry.avro(envelope([ID]), *(event("c", {"id": n}) for n in range(5)))
    good, other = registry.avro(KEY, {"id": 0}, {"id": 1})
    (text,) = registry.avro("string", "plain")
    decoded = decode(registry, values, [good, other + b"\1", text, b"raw", good[:5]])
    assert [offset for offset, _, _ in rows(decoded)] == [0]
    assert {
        rejected_record.offset: (rejected_record.stage, rejected_record.reason)
        for rejected_record in decoded.rejected
    } == {
        1: ("key", "invalid-avro"),
        2: ("key", "not-an-object"),
        3: ("key", "no-schema-id"),
        4: ("key", "invalid-avro"),
    }


def test_a_cell_that_does_not_fit_costs_its_record_only() -> None:
    registry = Registered()
    money = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    plain = {"type": "bytes"}
    fields = [ID, {"name": "price", "type": plain}]
    amounts = [1234, 99999999, -5, 2**70]
    events = [
        event("c", {"id": n, "price": amount.to_bytes(16, "big", signed=True)})
        for n, amount in enumerate(amounts)
    ]
    values = registry.avro(envelope(fields), *events)
    number = registry.add(json.dumps(envelope([ID, {"name": "price", "type": money}])))
    decoded = decode(registry, [framed(number, value[5:]) for value in values])
    assert [str(cells["price"]) for _, _, cells in rows(decoded)] == ["12.34", "-0.05"]
    assert [
        (rejected_record.offset, rejected_record.stage) for rejected_record in decoded.rejected
    ] == [(1, "cast"), (3, "cast")]


def test_values_that_the_source_left_out_are_marked_in_every_form() -> None:
    registry = Registered()
    fields = [
        {"name": "t", "type": ["null", "string"]},
        {"name": "b", "type": ["null", "bytes"]},
        {"name": "a", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
        {"name": "n", "type": ["null", {"type": "array", "items": "int"}]},
        {"name": "m", "type": ["null", {"type": "map", "values": "string"}]},
    ]
    gone = {"t": TEXT, "b": BYTES, "a": [TEXT], "n": list(BYTES), "m": {TEXT: TEXT}}
    there = {"t": "x", "b": b"x", "a": ["x"], "n": [1], "m": {"x": "y"}}
    values = registry.avro(envelope(fields), event("c", there), event("u", gone))
    decoded = decode(registry, values)
    (batch,) = decoded.batches
    assert sorted(batch.unavailable) == sorted(gone)
    assert all(marks.tolist() == [False, True] for marks in batch.unavailable.values())
    assert batch.columns.to_pylist()[1] == dict.fromkeys("tbanm")


def test_declared_types_win_and_small_keys_start_wide() -> None:
    registry = Registered()
    small = {"name": "id", "type": {"type": "int", "connect.type": "int16"}}
    amount = {"name": "n", "type": {"type": "int", "connect.type": "int16"}}
    values = registry.avro(envelope([small, amount]), event("c", {"id": 1, "n": 2}))
    keys = registry.avro(record("Key", [small]), {"id": 1})
    types = dict(decode(registry, values, keys).batches[0].types)
    assert types == {"id": DataType("INT"), "n": DataType("SMALLINT")}
    declared = {"n": parse_type("DECIMAL(10, 2)"), "id": parse_type("STRING")}
    decoded = decode(registry, values, keys, declared=declared)
    assert [str(value) for value in rows(decoded)[0][2].values()] == ["1", "2.00"]


def test_rows_of_several_tables_and_schemas_in_one_chunk_are_kept_apart() -> None:
    registry = Registered()
    first = registry.avro(envelope([ID]), event("c", {"id": 1}), event("c", {"id": 2}, table="b"))
    second = registry.avro(envelope([ID, LABEL]), event("c", {"id": 3, "label": "x"}))
    decoded = decode(registry, [*first, *second])
    found = {(b.source.table, tuple(b.columns.column_names)) for b in decoded.batches}
    assert found == {("item", ("id",)), ("b", ("id",)), ("item", ("id", "label"))}


def test_a_registry_that_is_down_rejects_nothing() -> None:
    registry = Registered()
    values = registry.avro(envelope([ID]), event("c", {"id": 1}))
    registry.down = True
    with pytest.raises(SourceError, match="down"):
        decode(registry, values)


def test_schemas_that_are_no_use_are_named() -> None:
    registry = Registered()
    json_id, broken = registry.add("{}", "JSON"), registry.add('{"type": "nonsense"}')
    loop = registry.add('{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}')
    field = '{"name":"r","type":"int"}'
    twice = registry.add(f'{{"type":"record","name":"R","fields":[{field},{field}]}}')
    decoded = decode(registry, [framed(number, b"") for number in (json_id, broken, loop, twice)])
    assert [rejected_record.reason for rejected_record in decoded.rejected] == [
        "wrong-schema-type",
        "invalid-schema",
        "invalid-schema",
        "invalid-schema",
    ]
    assert "contains itself" in decoded.rejected[2].message
    assert "two fields of the same name" in decoded.rejected[3].message


def test_without_a_registry_there_is_no_such_format() -> None:
    with pytest.raises(ConfigError, match="schema-registry"):
        load_data_format("debezium-avro")

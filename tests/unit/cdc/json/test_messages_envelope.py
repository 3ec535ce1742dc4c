"""Wrappers are recognised whatever their order and spacing, and told from columns."""

import json

import pytest

from ingestd.cdc.base import load_data_format
from ingestd.cdc.json.messages import NO_ENVELOPE, Envelopes
from ingestd.cdc.record_errors import RecordError
from tests.support.change_events import chunk, event, field, key, wrapped, wrapped_key

COLUMNS = [field("id", "int32"), field("v", "string")]
EVENT = event("c", {"id": 1, "v": "}"})
WRAPPED = wrapped(EVENT, COLUMNS)
SCHEMA = json.dumps(json.loads(WRAPPED)["schema"]).encode()


@pytest.mark.parametrize(
    "message",
    [
        WRAPPED,
        WRAPPED + b" \n",
        b' {\n "schema" : ' + SCHEMA + b' ,\t"payload" : ' + EVENT + b"\n}",
        b'{"payload":' + EVENT + b',"schema":' + SCHEMA + b"}",
        b'{ "payload" :\n' + EVENT + b' , "schema": ' + SCHEMA + b" }\n",
    ],
)
def test_wrapper_comes_off(message: bytes) -> None:
    envelopes = Envelopes(is_key=False)
    envelope, payload = envelopes.open(message)
    assert payload == EVENT
    assert [column.name for column in envelope.columns or ()] == ["id", "v"]
    again, other = envelopes.open(message.replace(b'"id": 1', b'"id": 22'))
    assert again is envelope
    assert json.loads(other)["after"]["id"] == 22
    assert envelope.cut([message, message]) == [EVENT, EVENT]


def test_other_wrapper_is_not_cut() -> None:
    envelope, _ = Envelopes(is_key=False).open(WRAPPED)
    assert envelope.cut([WRAPPED, wrapped(EVENT, COLUMNS[:1])]) is None
    assert envelope.cut([WRAPPED, WRAPPED[:-1] + b"]"]) is None
    assert envelope.cut([EVENT]) is None


@pytest.mark.parametrize(
    "message", [EVENT, b'{"schema":1}', b'{"schema":{},"payload":{},"more":1}', b"[]", b"7"]
)
def test_message_without_wrapper_is_left_alone(message: bytes) -> None:
    assert Envelopes(is_key=False).open(message) == (NO_ENVELOPE, message)


def test_wrapper_with_null_schema_holds_a_bare_payload() -> None:
    message = b'{"schema":null,"payload":' + EVENT + b"}"
    envelope, payload = Envelopes(is_key=False).open(message)
    assert (envelope.columns, payload) == (None, EVENT)
    decoded = load_data_format("debezium-json").decode(chunk([message, message]), {}, {})
    assert [row["id"] for row in decoded.batches[0].columns.to_pylist()] == [1, 1]


def test_two_payloads_are_refused() -> None:
    message = b'{"payload":{},"schema":' + SCHEMA + b',"payload":' + EVENT + b"}"
    with pytest.raises(RecordError) as caught:
        Envelopes(is_key=False).open(message)
    assert caught.value.reason.code == "invalid-envelope"


def test_table_may_own_columns_called_schema_and_payload() -> None:
    rows = [{"schema": f"s{n}", "payload": f"p{n}"} for n in range(3)]
    values = [event("c", row) for row in rows]
    values[2] = event("d")
    decoded = load_data_format("debezium-json").decode(
        chunk(values, [key(**row) for row in rows]), {}, {}
    )
    assert decoded.rejected == []
    [batch] = decoded.batches
    assert batch.primary_keys == ("schema", "payload")
    assert batch.columns.to_pylist() == rows


def test_key_wrapper_names_the_fields_of_the_key() -> None:
    envelope, payload = Envelopes(is_key=True).open(wrapped_key(key(id=1), COLUMNS[:1]))
    assert payload == key(id=1)
    assert [column.name for column in envelope.columns or ()] == ["id"]


def test_wrapped_and_bare_messages_may_follow_each_other() -> None:
    data_format = load_data_format("debezium-json")
    bare_key, full_key = key(id=1), wrapped_key(key(id=1), COLUMNS[:1])
    for _ in range(2):
        decoded = data_format.decode(
            chunk([WRAPPED, EVENT, WRAPPED], [full_key, bare_key, full_key]), {}, {}
        )
        assert decoded.rejected == []
        assert sorted(o for batch in decoded.batches for o in batch.offset.tolist()) == [0, 1, 2]


def test_many_wrappers_are_all_understood() -> None:
    envelopes = Envelopes(is_key=False)
    for number in range(1100):
        columns = [field(f"c{number}", "int32")]
        envelope, _ = envelopes.open(wrapped(EVENT, columns))
        assert envelope.columns is not None
        assert envelope.columns[0].name == f"c{number}"

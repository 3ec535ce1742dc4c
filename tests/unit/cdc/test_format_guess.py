"""What messages look like, held against messages of every data format."""

import json

import pytest

from ingestd.cdc.format_guess import Guess, guess_format
from ingestd.cdc.schema_lookup import RegisteredSchema
from tests.support.cdc_samples import samples

ALSO_FLAT = {"dbz flattened row"}
TELLS_NOTHING = {"dbz heartbeat", "dbz schema change event", "dbz transaction event"}


@pytest.mark.parametrize("sample", samples(), ids=lambda one: one.name)
def test_every_message_looks_like_its_format_or_shows_nothing(sample: object) -> None:
    value = None if sample.value is None else json.dumps(sample.value).encode()  # type: ignore[attr-defined]
    found = guess_format([value]).data_format
    name, wanted = sample.name, sample.format  # type: ignore[attr-defined]
    if name in TELLS_NOTHING or value is None:
        assert found is None
    else:
        assert found == ("debezium-flat-json" if name in ALSO_FLAT else wanted)


class Schemas:
    """A registry with an Avro envelope, an Avro row, a Protobuf and a JSON schema."""

    def find(self, schema_id: int | str) -> RegisteredSchema | None:
        envelope = {"type": "record", "fields": [{"name": "op"}, {"name": "source"}]}
        row = {"type": "record", "fields": [{"name": "id"}]}
        known = {
            1: RegisteredSchema("AVRO", json.dumps(envelope)),
            2: RegisteredSchema("AVRO", json.dumps(row)),
            3: RegisteredSchema("PROTOBUF", ""),
        }
        return known.get(int(schema_id))


def framed(schema_id: int, body: bytes = b"\x02\x04") -> bytes:
    return b"\0" + schema_id.to_bytes(4) + body


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (framed(1), "debezium-avro"),
        (framed(2), "avro"),
        (framed(3), "protobuf"),
        (framed(4), "raw"),
        (framed(9, b'{"id": 1}'), "json"),
        (framed(9, b'{"op": "c", "after": {}, "source": {}}'), "debezium-json"),
        (b"\xff\xfe", "raw"),
        (b"[1, 2]", "raw"),
        (b"[" * 100_000, "raw"),
    ],
)
def test_binary_messages_are_recognized_by_their_schemas(value: bytes, wanted: str) -> None:
    assert guess_format([value], Schemas()).data_format == wanted


def test_without_a_registry_it_is_only_known_that_one_is_needed() -> None:
    assert guess_format([framed(1), None]) == Guess("debezium-avro", 1, 1, needs_registry=True)


def test_most_messages_decide_and_those_that_show_a_format_before_plain_rows() -> None:
    debezium, plain = b'{"op": "c", "after": {"id": 1}}', b'{"id": 1}'
    assert guess_format([debezium, debezium, plain, None, b""]) == Guess("debezium-json", 2, 3)
    assert guess_format([plain, plain, debezium]).data_format == "debezium-json"
    assert guess_format([None]) == Guess(None, 0, 0)

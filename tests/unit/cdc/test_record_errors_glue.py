"""Messages of the AWS Glue Schema Registry are rejected by name, whatever the data format."""

import pytest

from ingestd.cdc.base import FormatSettings, load_data_format
from ingestd.cdc.format_guess import Guess, guess_format
from ingestd.cdc.schema_lookup import is_glue
from tests.support.registered import Registered, chunk_of

UUID = bytes(range(16))
PLAIN, COMPRESSED = b"\3\0" + UUID + b"\2a", b"\3\5" + UUID + b"x\x9c"


@pytest.mark.parametrize(
    "name", ["avro", "debezium-avro", "protobuf", "debezium-json", "json", "canal-json"]
)
def test_the_reason_names_glue_and_the_way_out(name: str) -> None:
    decoder = load_data_format(name, FormatSettings(schemas=Registered()))
    chunk = chunk_of([PLAIN, COMPRESSED], topic="shop.public.item")
    rejected = decoder.decode(chunk, {}, {}).rejected
    assert [(record.offset, record.reason) for record in rejected] == [
        (0, "glue-framing"),
        (1, "glue-framing"),
    ]
    assert "AWS Glue" in rejected[0].message and "AvroConverter" in rejected[0].message
    assert rejected[0].value == PLAIN


def test_other_messages_are_not_of_glue() -> None:
    for message in (None, b"", b"\3", b"\3\1" + UUID, b"\3\0" + UUID[:15], b"\0\0" + UUID):
        assert not is_glue(message)


def test_no_data_format_is_guessed_for_them() -> None:
    assert guess_format([PLAIN, COMPRESSED]) == Guess(None, 0, 0)

"""Texts of messages in a column that is declared as an integer."""

from ingestd.paimon.spec.data_types import parse_type
from tests.support.change_events import TABLE, chunk, event, field, wrapped
from tests.support.decoded import both_decoders


def test_a_hexadecimal_text_of_an_integer_is_rejected() -> None:
    columns = [field("id", "int32"), field("v", "string")]
    messages: list[bytes | None] = [
        wrapped(event("c", {"id": n, "v": value}), columns) for n, value in enumerate(["7", "0x10"])
    ]
    for decoder in both_decoders():
        found = decoder.decode(chunk(messages), {}, {TABLE: {"v": parse_type("INT")}})
        [batch] = found.batches
        assert batch.columns.column("v").to_pylist() == [7]
        assert [record.offset for record in found.rejected] == [1]

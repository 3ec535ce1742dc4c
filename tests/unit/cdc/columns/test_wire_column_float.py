"""Numbers of messages in a column that is declared as FLOAT."""

from ingestd.paimon.spec.data_types import parse_type
from tests.support.change_events import TABLE, chunk, event, field, wrapped
from tests.support.decoded import both_decoders

COLUMNS = [field("id", "int32"), field("v", "double")]


def test_a_double_out_of_range_of_a_float_is_rejected() -> None:
    messages: list[bytes | None] = [
        wrapped(event("c", {"id": n, "v": value}), COLUMNS)
        for n, value in enumerate([1.5, 1e300, -1e39])
    ]
    for decoder in both_decoders():
        found = decoder.decode(chunk(messages), {}, {TABLE: {"v": parse_type("FLOAT")}})
        [batch] = found.batches
        assert batch.columns.column("v").to_pylist() == [1.5]
        assert [record.offset for record in found.rejected] == [1, 2]
        assert {record.reason for record in found.rejected} == {"out-of-range"}

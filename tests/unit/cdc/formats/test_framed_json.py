import json

import pytest

from ingestd.cdc.base import FormatSettings, load_data_format
from ingestd.cdc.schema_lookup import Framing
from tests.support.registered import Registered, chunk_of, framed

ROWS = [json.dumps({"id": number}).encode() for number in range(3)]


@pytest.mark.parametrize("name", ["json", "debezium-flat-json"])
def test_the_id_of_a_schema_is_taken_off_values_and_keys(name: str) -> None:
    bare = load_data_format(name)
    registry = Registered()
    data_format = load_data_format(name, FormatSettings(schemas=registry))
    values, keys = [framed(7, row) for row in ROWS], [framed(8, row) for row in ROWS]
    guid = b"\1" + bytes(16)
    found = data_format.decode(chunk_of([*values, guid + ROWS[0]], [*keys, ROWS[0]]), {}, {})
    wanted = bare.decode(chunk_of([*ROWS, ROWS[0]], [*ROWS, ROWS[0]]), {}, {})
    assert [b.columns for b in found.batches] == [b.columns for b in wanted.batches]
    assert [b.primary_keys for b in found.batches] == [("id",)] * len(found.batches)
    assert registry.asked == [] and data_format.name == name


def test_what_is_rejected_keeps_its_own_bytes() -> None:
    settings = FormatSettings(schemas=Registered(), framing=Framing(id_bytes=8))
    wide = b"\0" + bytes(8)
    broken = wide + b"{"
    found = load_data_format("json", settings).decode(
        chunk_of([wide + ROWS[0], broken, None], [None, b"key", None]), {}, {}
    )
    assert [
        (rejected_record.offset, rejected_record.value, rejected_record.key)
        for rejected_record in found.rejected
    ] == [(1, broken, b"key")]
    assert found.batches[0].columns.to_pydict() == {"id": [0]}

"""Which reader a column gets by the kinds of its values."""

import msgspec

from ingestd.cdc.columns.json_columns import choose_reader
from ingestd.cdc.columns.json_inference import ENTRY
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.paimon.spec.data_types import parse_type

MAP = WireColumn("m", parse_type({"type": "MAP", "key": "STRING", "value": "INT"}))


def test_maps_are_read_as_such_only_if_all_values_are_objects() -> None:
    entries = ENTRY + "i8"
    assert choose_reader(MAP, frozenset({"object", entries})).wire is not msgspec.Raw
    assert choose_reader(MAP, frozenset({"object", "text", entries})).wire is msgspec.Raw

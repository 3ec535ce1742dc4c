"""Which chunks of the JSON formats are read whole, and that no one can tell."""

import json
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import Decoded, RecordChunk, load_data_format
from ingestd.cdc.json.format_readers import no_objects
from ingestd.cdc.native_module import native_module
from tests.support.decoded import both_decoders, in_python, outcome
from tests.support.layout_messages import FORMATS, Change, message, text

needs_extension = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
ROW = {"id": 1, "v": "x", "n": 5, "d": 3, "f": True, "e": "a", "t": None, "r": 1.5}
STYLES = {"ogg-json": 5, "aliyun-json": 6}
"""The style whose positions are read natively, where it is not the first."""
OLD = {"v": "before"}
USUAL: list[Change] = [
    ("c", ROW, None),
    ("u", ROW, OLD),
    ("d", ROW, None),
    ("r", {**ROW, "v": None}, None),
    ("u", {**ROW, "id": 2}, {"id": 1}),
    ("u", {**ROW, "v": 'quotes " \\ and \n, ümläut'}, {}),
]


class Watched:
    """A decoder with the extension and one without; tells how many chunks were taken apart."""

    def __init__(self, name: str, *, images: bool = False) -> None:
        self.native, self.pure = both_decoders(name, images=images)
        self.apart = 0
        sort = self.native._sort

        def spy(*arguments: Any) -> Any:
            self.apart += 1
            return sort(*arguments)

        self.native._sort = spy  # type: ignore[method-assign]  # counts its calls

    def same(self, *chunks: RecordChunk) -> list[Any]:
        found = outcome(self.native, chunks)
        assert found == outcome(self.pure, chunks)
        return found


def chunk(values: list[bytes | None], keys: list[bytes | None] | None = None) -> RecordChunk:
    offsets = np.arange(len(values), dtype=np.int64)
    keys = keys or [None] * len(values)
    return RecordChunk("p.inv.item", 0, offsets, offsets, keys, values, None)


def values_of(name: str, changes: list[Change], style: int | None = None) -> list[bytes | None]:
    chosen = STYLES.get(name, 1) if style is None else style
    return [text(message(name, change, place, chosen)) for place, change in enumerate(changes)]


@needs_extension
@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_chunks_of_usual_messages_are_not_taken_apart(name: str, images: bool) -> None:
    watched = Watched(name, images=images)
    usual = chunk(values_of(name, USUAL))
    [_, facts] = watched.same(usual, usual)
    assert facts["rejected"] == []
    assert watched.apart == 1


@needs_extension
def test_updates_that_lack_columns_are_read_whole() -> None:
    watched = Watched("ogg-json")
    partial = chunk(values_of("ogg-json", [("u", {"id": 1, "v": "y"}, None), ("u", ROW, OLD)]))
    [_, facts] = watched.same(chunk(values_of("ogg-json", USUAL)), partial)
    assert facts["batches"][0]["unavailable"]["n"] == [True, False]
    assert watched.apart == 1


@needs_extension
def test_messages_of_several_rows_are_read_whole() -> None:
    watched = Watched("canal-json")
    [_, facts] = watched.same(
        chunk(values_of("canal-json", USUAL)), chunk(values_of("canal-json", USUAL, style=2))
    )
    assert watched.apart == 1
    # The fifth update moved the keys of its rows, each of which is a row more.
    assert facts["batches"][0]["offsets"][1].count(0) == 3


ODD_ENDS: dict[str, list[tuple[bytes, bytes]]] = {
    "maxwell-json": [
        (b'"type":"insert"', b'"type":"table-drop"'),
        (b'"type":"insert"', b'"type":"other"'),
        (b'"table":"item"', b'"table":"other"'),
        (b'"xoffset":0', b'"xoffset":"0"'),
        (b'"position":"bin.', b'"position":"b\\u0069n.'),
        (b'"data":', b'"data":null,"more":'),
    ],
    "canal-json": [
        (b'"isDdl":false', b'"isDdl":true'),
        (b'"data":[', b'"data":[],"more":['),
        (b'"bigint(20)"', b'"int(20)"'),
        (b'"id":"0"', b'"id":0'),
        (b'"pkNames":["id"]', b'"pkNames":"id"'),
        (b'"n":"5"', b'"n":"5.5"'),
    ],
    "ogg-json": [
        (b'"op_type":"I"', b'"op_type":"T"'),
        (b'"v":"x"', b'"v":"x","v_isMissing":true'),
        (b'"after":', b'"after":null,"more":'),
    ],
    "aws-dms-json": [
        (b'"v":"x"', b'"v":"x","BI_v":"y"'),
        (b'"operation":"insert"', b'"operation":"drop"'),
        (b'"data":', b'"data":[],"more":'),
    ],
    "aliyun-json": [(b'"ddl":null', b'"ddl":"alter"'), (b'"LONG"', b'"STRING"')],
    "debezium-flat-json": [
        (b'"__op":"c"', b'"__op":"t"'),
        (b'"__op":"c"', b'"__op":null'),
        (b'"__deleted":"false"', b'"__deleted":false'),
        (b'"v":"x"', b'"v":"x","payload":null'),
    ],
    "json": [(b'"v":"x"', b'"v":1'), (b'"v":"x"', b'"v":"x","v":"y"'), (b'{"id"', b'["id"')],
}


@needs_extension
@pytest.mark.parametrize("name", FORMATS)
def test_chunks_with_an_odd_message_are_taken_apart(name: str) -> None:
    usual = values_of(name, USUAL)
    assert usual[0]
    for found, other in ODD_ENDS[name]:
        assert found in usual[0], found
        watched = Watched(name)
        irregular = usual[0].replace(found, other)
        watched.same(chunk(usual), chunk([usual[1], irregular, usual[3]]))
        assert watched.apart == 2, other


@needs_extension
def test_rows_with_a_message_key_are_read_whole_and_other_keys_are_looked_at() -> None:
    rows = values_of("json", [("c", ROW, None)] * 2)
    watched = Watched("json")
    keyed = chunk(rows, [b'{"id":1}', b'{"id": 1}'])
    watched.same(keyed, keyed)
    assert watched.apart == 1
    watched.same(chunk(rows, [b'{"id":1}', b"1"]), chunk(rows, [b'{"id":1}', None]))
    assert watched.apart == 3
    watched.same(chunk(rows, [b"a", None]), chunk(rows, [b"1", b'"b"']))
    # The first of them has shown how messages without a key look.
    assert watched.apart == 3


@needs_extension
def test_wrapped_rows_are_read_whole() -> None:
    fields = [{"field": "id", "type": "int64"}, {"field": "v", "type": "string", "optional": True}]
    schema = {"type": "struct", "fields": fields}
    rows: list[bytes | None] = [
        json.dumps({"schema": schema, "payload": {"id": index, "v": None}}).encode()
        for index in range(3)
    ]
    watched = Watched("json")
    watched.same(chunk(rows), chunk(rows))
    assert watched.apart == 1


@needs_extension
@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("name", ["json", "debezium-flat-json"])
def test_tombstones_are_read_with_the_rows_beside_them(name: str, images: bool) -> None:
    watched = Watched(name, images=images)
    row, *more = values_of(name, [("c", ROW, None), ("u", ROW, OLD), ("d", ROW, None)])
    rows: list[bytes | None] = [None, row, None, *more, None]
    keys: list[bytes | None] = [b'{"id":%d}' % number for number in (1, 1, 2, 1, 1, 3)]
    [_, facts] = watched.same(chunk([row] * 2, keys[1:3]), chunk(rows, keys))
    assert watched.apart == 1
    assert facts["control"] == 0
    [batch] = facts["batches"]
    assert [batch["columns"]["id"][index] for index in (0, 2, -1)] == ["1", "2", "3"]
    assert [batch["kinds"][1][index] for index in (0, 1, 2, -1)] == [3, 0, 3, 3]


@needs_extension
def test_tombstones_that_are_not_deletes_of_the_rows_beside_them_are_taken_apart() -> None:
    watched = Watched("debezium-flat-json")
    row, other = (b'{"id":1,"__op":"c","__table":"%s"}' % table for table in (b"item", b"other"))
    keys: list[bytes | None] = [b'{"id":1}', b'{"id":2}']
    watched.same(chunk([row] * 2, keys))
    watched.same(chunk([row, None], [keys[0], None]))
    watched.same(chunk([None, None], keys))
    assert watched.apart == 3
    # The first record deletes a row of the table before it, not of the one that follows.
    [_, facts] = watched.same(chunk([row] * 2, keys), chunk([None, other], keys))
    assert watched.apart == 4
    assert [batch["kinds"][1] for batch in facts["batches"]] == [[3], [0]]
    assert [batch["source"].table for batch in facts["batches"]] == ["item", "other"]


def test_without_the_extension_every_chunk_is_taken_apart() -> None:
    pure = in_python(load_data_format("json"))
    found: Decoded = pure.decode(chunk(values_of("json", USUAL)), {}, {})
    assert len(found.batches[0].offset) == len(USUAL)


@pytest.mark.parametrize("key", [b"{}", b' {"id":1}', b"\n1"])
def test_keys_that_may_be_objects_are_not_none(key: bytes) -> None:
    assert not no_objects([None, key])
    assert no_objects([None, b"", b"1", b"\xff"])

"""No message of any JSON format is lost, counted twice or read in two ways, however broken."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import DATA_FORMATS, Decoded, RecordChunk, load_data_format
from ingestd.cdc.json.json_changes import JsonChanges
from tests.support import cdc_samples
from tests.support.decoded import in_python, outcome
from tests.support.examples import examples
from tests.support.layout_messages import paths

FORMATS = [name for name in sorted(DATA_FORMATS) if name.endswith(("json", "bson"))]
SAMPLES = {
    name: [sample for sample in cdc_samples.samples() if sample.format == name] for name in FORMATS
}
DATA_WORKS = {
    "schema": {
        "dataColumn": [{"name": "id", "type": "LONG"}, {"name": "at", "type": "DATE"}],
        "primaryKey": ["id"],
        "source": {"dbName": "inv", "tableName": "item"},
    },
    "payload": {
        "before": {"dataColumn": {"id": 2, "at": 1731661114000}},
        "after": {"dataColumn": {"id": "3", "at": None}},
        "sequenceId": "1731663842292000001",
        "op": "UPDATE_AFTER",
        "ddl": None,
    },
}
FLAT = {"id": 1, "v": "x", "__op": "u", "__deleted": "false", "__lsn": 5, "__table": "item"}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["1", "-0.5", "id", "0000-00-00", "__debezium_unavailable_value", "U", "d"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def documents(name: str) -> list[tuple[Any, Any]]:
    """Keys and values of messages that are as they should be."""
    found = [(one.key, one.value) for one in SAMPLES[name]]
    if name == "aliyun-json":
        found.append((None, DATA_WORKS))
    if name == "debezium-flat-json":
        found += [({"id": 1}, FLAT), (None, FLAT), ({"id": 1}, {**FLAT, "__deleted": "true"})]
    return found


def changed(document: Any, path: tuple[Any, ...], value: Any, *, drop: bool) -> Any:
    """A copy with another value, or none, in one place."""
    copy = json.loads(json.dumps(document))
    inner = copy
    for name in path[:-1]:
        inner = inner[name]
    if drop:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copy


@st.composite
def messages(draw: st.DrawFn, name: str) -> tuple[bytes | None, bytes | None]:
    """A message that may be broken in a place or two."""
    key, value = draw(st.sampled_from(documents(name)))
    for _ in range(draw(st.integers(0, 2))):
        places = paths(value)
        if places:
            place = draw(st.sampled_from(places))
            value = changed(value, place, draw(VALUES), drop=draw(st.booleans()))
    texts = [None if one is None else json.dumps(one).encode() for one in (key, value)]
    how = draw(st.sampled_from(["whole"] * 6 + ["cut", "byte", "tombstone", "other key"]))
    if how == "tombstone":
        return texts[0], None
    if how == "other key":
        return draw(st.sampled_from([None, b"1", b"{}", b"\xff", b'{"id":2}', b"null"])), texts[1]
    if texts[1] and how == "cut":
        return texts[0], texts[1][: draw(st.integers(0, len(texts[1])))]
    if texts[1] and how == "byte":
        place = draw(st.integers(0, len(texts[1]) - 1))
        other = draw(st.binary(min_size=1, max_size=1))
        return texts[0], texts[1][:place] + other + texts[1][place + 1 :]
    return texts[0], texts[1]


def counted(decoded: Decoded, size: int) -> None:
    """Every offset is in one place, control messages apart."""
    rows = {int(offset) for batch in decoded.batches for offset in batch.offset}
    places = Counter(rows)
    places.update(rejected_record.offset for rejected_record in decoded.rejected)
    places.update(truncate.offset for truncate in decoded.truncates)
    assert set(places.values()) <= {1}
    assert len(places) + decoded.control == size
    assert set(places) <= set(range(size))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_record_is_in_one_place_and_both_decoders_agree(name: str, data: Any) -> None:
    native, pure = load_data_format(name), load_data_format(name)
    if isinstance(pure, JsonChanges):
        pure = in_python(pure)
    chunks = []
    for _ in range(data.draw(st.integers(1, 2))):
        found = data.draw(st.lists(messages(name), min_size=1, max_size=5))
        offsets = np.arange(len(found), dtype=np.int64)
        keys, values = [key for key, _ in found], [value for _, value in found]
        chunks.append(RecordChunk("p.inv.item", 0, offsets, offsets, keys, values, None))
        counted(load_data_format(name).decode(chunks[-1], {}, {}), len(found))
    assert outcome(native, chunks) == outcome(pure, chunks)

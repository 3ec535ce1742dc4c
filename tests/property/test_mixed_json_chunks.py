"""Chunks that mix tables, statements and tombstones come out as if each message was normalized."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType
from tests.property.mixed_messages import mixed
from tests.support.decoded import both_decoders, outcome
from tests.support.examples import examples
from tests.support.layout_messages import FORMATS

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
KEYS: list[list[bytes | None]] = [
    [None],
    [b'{"id":0}', b'{"id":1}', b'{"id":2}'],
    [b'{"id":1,"v":"x"}', b'{"id":2,"v":"y"}', b'{"v":"x","id":1}'],
    [b'{"id":1}', b'{"id": 2}', None, b"1"],
]
KNOWN = {"id": DataType("BIGINT", nullable=False), "v": DataType("STRING")}


@st.composite
def chunks(draw: st.DrawFn, name: str) -> list[RecordChunk]:
    """A chunk of sound rows, so that there are plans, then chunks of anything."""
    keys = draw(st.sampled_from(KEYS))
    found, first = [], 0
    for number in range(draw(st.integers(2, 3))):
        irregular = draw(st.sampled_from([0, 8, 3])) if number else 0
        values = draw(mixed(name, draw(st.integers(2, 12)), first, irregular))
        offsets = np.arange(first, first + len(values))
        texts = [draw(st.sampled_from(keys)) for _ in values]
        found.append(RecordChunk("p.inv.item", 0, offsets, offsets, [*texts], values, None))
        first += len(values)
    return found


@pytest.mark.parametrize("name", [*FORMATS, "debezium-json"])
@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mixed_chunks_come_out_as_restated_ones(name: str, data: Any) -> None:
    stream, images = data.draw(chunks(name)), data.draw(st.booleans())
    native, pure = both_decoders(name, images=images)
    known = {}
    if data.draw(st.booleans()):
        sources = {batch.source for one in stream for batch in pure.decode(one, {}, {}).batches}
        known = dict.fromkeys(sources, KNOWN)
        native, pure = both_decoders(name, images=images)
    assert outcome(native, stream, known) == outcome(pure, stream, known)

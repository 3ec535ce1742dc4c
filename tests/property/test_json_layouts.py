"""What every layout makes of whole messages is what the decoder in Python makes of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType
from tests.support.decoded import both_decoders, outcome
from tests.support.examples import examples
from tests.support.layout_messages import (
    FORMATS,
    SOUND,
    STYLES,
    changes,
    message,
    odd_texts,
    text,
)

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
KEYED = ("json", "debezium-flat-json")
"""Formats whose message keys are those of rows."""
ID = DataType("BIGINT", nullable=False)
KNOWN = {"id": ID, "v": DataType("STRING"), "r": DataType("DOUBLE")}


@st.composite
def chunks(draw: st.DrawFn, name: str) -> list[RecordChunk]:
    """Chunks of one table: first sound ones, so that there is a plan, then any."""
    names = ["id", *draw(st.lists(st.sampled_from(sorted(set(SOUND) - {"id"})), unique=True))]
    styles = [draw(st.integers(0, STYLES - 1))] * draw(st.integers(1, 3))
    keys = draw(st.sampled_from([None, b"plain", b'{"id":%d}', b'{"id":"%d"}']))
    found, first = [], 0
    for number in range(draw(st.integers(2, 3))):
        values: list[bytes | None] = []
        for _ in range(draw(st.integers(1, 6))):
            style = draw(st.sampled_from(styles))
            style = style if draw(st.integers(0, 5)) else draw(st.integers(0, STYLES - 1))
            document = message(name, draw(changes(names)), first + len(values), style)
            blank = draw(st.sampled_from(["", "", " ", "\n\t"]))
            value: bytes | None = text(document, blank=blank, ascii_only=draw(st.booleans()))
            if number and draw(st.integers(0, 5)) == 0:
                value = draw(odd_texts(document) | st.none())
            values.append(value)
        offsets = np.arange(first, first + len(values))
        first += len(values)
        texts = [keys % index if keys and b"%" in keys else keys for index in range(len(values))]
        found.append(RecordChunk("p.inv.item", 0, offsets, offsets, [*texts], values, None))
    return found


def both(name: str, *, images: bool) -> tuple[Any, Any]:
    """A decoder with the extension, and one without."""
    return both_decoders(name, images=images)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whole_messages_come_out_as_restated_ones(name: str, data: Any) -> None:
    stream = data.draw(chunks(name))
    native, pure = both(name, images=data.draw(st.booleans()))
    known = {}
    if data.draw(st.booleans()):
        sources = {batch.source for one in stream for batch in pure.decode(one, {}, {}).batches}
        known = dict.fromkeys(sources, KNOWN)
        native, pure = both(name, images=data.draw(st.booleans()))
    assert outcome(native, stream, known) == outcome(pure, stream, known)

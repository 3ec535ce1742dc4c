"""Captured streams come out the same from both decoders, to the last bit."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ingestd.cdc.assembly import TableChanges
from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.cdc.columns.column_reader import PlanColumn
from ingestd.cdc.json import table_messages
from ingestd.cdc.native_module import native_module
from tests.support import captured_chunks
from tests.support.decoded import both_decoders, outcome

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)

STREAMS: dict[str, Callable[[], list[RecordChunk]]] = {
    "postgres": lambda: captured_chunks.shop("json", 300),
    "postgres with schemas": lambda: captured_chunks.shop("json-schema", 300),
    "postgres in small chunks": lambda: captured_chunks.shop("json-schema", 7),
    "mariadb with schemas": lambda: captured_chunks.mariadb(50),
}


@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("stream", STREAMS)
def test_captured_streams_come_out_the_same(
    stream: str, images: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Callable[..., TableChanges[PlanColumn]] = table_messages.read_natively
    decode: Callable[..., ChangeBatch] = table_messages._decode_in_python
    rows: Counter[str] = Counter()

    def natively(reader: Any, plan: Any, messages: Any) -> TableChanges[PlanColumn]:
        changes = read(reader, plan, messages)
        rows["native"] += len(messages.values)
        return changes

    def in_python(plan: Any, payloads: Any) -> ChangeBatch:
        rows["python"] += 0 if plan.native is None else len(payloads.values)
        return decode(plan, payloads)

    monkeypatch.setattr(table_messages, "read_natively", natively)
    monkeypatch.setattr(table_messages, "_decode_in_python", in_python)
    chunks = STREAMS[stream]()
    native, pure = both_decoders(images=images)
    # Twice: the first time there is much to learn.
    assert outcome(native, chunks + chunks) == outcome(pure, chunks + chunks)
    assert rows["native"] > 0
    assert rows["python"] * 2 < rows["native"], rows

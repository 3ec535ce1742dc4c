"""Tables with `where` have the rows that a plain model keeps, by either reader of the messages."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.native_module import native_module
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages import decode_stage, map_side_dedup
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import event
from tests.support.decoded import both_decoders
from tests.support.ingest_rig import Rig

pytestmark = pytest.mark.skipif(
    native_module() is None, reason="the native extension is not built: `make setup` needs cargo"
)
Row = dict[str, Any]
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "state <> 'draft'": lambda row: row["state"] not in (None, "draft"),
    "not (n = 1)": lambda row: row["n"] not in (None, 1),
    "state is null or n > 2": lambda row: row["state"] is None or (row["n"] or 0) > 2,
    "n in (1, 3) and note = 'x'": lambda row: row["n"] in (1, 3) and row["note"] == "x",
}
TYPES = {"n": DataType("BIGINT"), "state": DataType("STRING"), "note": DataType("STRING")}
CHANGES = st.tuples(
    st.integers(1, 3),
    st.sampled_from("ccuuud"),
    st.sampled_from(["paid", "draft", None]),
    st.none() | st.integers(0, 4),
    st.sampled_from(["x", None]),
)
OPTIONS = [{"bucket": "-1"}, {"bucket": "2"}, {"bucket": "1", "changelog-producer": "lookup"}]


class KeylessRig(Rig):
    """A rig whose records have no message key."""

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        """Records of a range in chunks of three."""
        for chunk in super().fetch(source, wanted):
            yield replace(chunk, keys=[None] * len(chunk.offsets))


def message(change: tuple[Any, ...]) -> tuple[str, Row, bytes]:
    identity, op, state, n, note = change
    row = {"id": identity, "state": state, "n": n, "note": note}
    return op, row, event(op, None if op == "d" else row, before=row if op == "d" else None)


def shown(row: Row) -> Row:
    return {name: row[name] for name in ("id", "state", "n")}


def run(settings: TableSettings, decoder: Any, batches: list[list[bytes]]) -> tuple[list[Row], int]:
    """Return the rows of a table after all batches, which are read twice, and the filtered rows."""
    rig = KeylessRig(settings={"orders": settings})
    filtered = 0
    with (
        mock.patch.object(map_side_dedup, "_LEAST_ROWS", 1),
        mock.patch.object(decode_stage, "shared_data_format", lambda *_: decoder),
    ):
        for batch in batches:
            rig.produce(*batch)
            filtered += rig.run().counts.skipped["lake.orders", "filtered"]
        rows = rig.rows("orders", "id", "state", "n")
        if settings.primary_keys:
            rig.committed.clear()
            rig.run()
            assert rig.rows("orders", "id", "state", "n") == rows
    return rows, filtered


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(CHANGES, min_size=1, max_size=8), min_size=1, max_size=3),
    st.sampled_from(sorted(CONDITIONS)),
    st.sampled_from([None, *OPTIONS]),
)
def test_a_table_has_the_rows_of_a_plain_model(
    changes: list[list[Any]], condition: str, options: dict[str, str] | None
) -> None:
    keyed = options is not None
    table = TableSettings(
        primary_keys=("id",) if keyed else (),
        options=options or {},
        column_types=TYPES,
        keyless_table_mode="latest-only",
        shape=ShapeSettings(exclude=("note",), where=parse_filter(condition)),
    )
    batches = [[message(change) for change in batch] for batch in changes]
    left_out, by_key, appended = 0, dict[int, Row](), list[Row]()
    for op, row, _ in (one for batch in batches for one in batch):
        by_key.pop(row["id"], None)
        if op != "d" and CONDITIONS[condition](row):
            by_key[row["id"]] = shown(row)
            appended.append(shown(row))
        left_out += op != "d" and not CONDITIONS[condition](row)
    model = sorted(by_key.values() if keyed else appended, key=repr)
    for decoder in both_decoders():
        found = run(table, decoder, [[text for _, _, text in batch] for batch in batches])
        assert found == (model, left_out)

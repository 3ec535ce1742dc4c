"""Rows that decode tasks leave out change nothing of what a table comes to hold."""

from typing import Any
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.stages import decode_stage, map_side_dedup
from ingestd.paimon.spec.data_types import DataType
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    INSERT,
    UNAVAILABLE,
    UPDATE_AFTER,
    Change,
    JsonChanges,
    record,
)

OPTIONS = [
    {"bucket": "-1"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    {"bucket": "2"},
    {"bucket": "1", "ignore-delete": "true"},
    {"bucket": "1", "sequence.field": "n"},
    {"bucket": "1", "merge-engine": "first-row", "ignore-delete": "true"},
    {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    {"bucket": "1", "changelog-producer": "input"},
    {"bucket": "-2"},
]
KINDS = [INSERT, UPDATE_AFTER, UPDATE_AFTER, DELETE]
FORMAT = JsonChanges()
TYPES = {"id": DataType("STRING"), "n": DataType("INT"), "text": DataType("STRING")}
CHANGES = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(KINDS),
    st.sampled_from(["x", "y", "y", None, UNAVAILABLE]),
    st.integers(-1, 30),
    st.integers(0, 1),
)


def batches() -> Any:
    return st.lists(st.lists(CHANGES, min_size=1, max_size=16), min_size=1, max_size=2)


def after(batches: list[list[Any]], options: dict[str, str], slots: int, least: int) -> list[Any]:
    """What a table holds after each batch, if so few rows are looked for the newest in them."""
    keys = ("id",)
    rig = Rig(
        defaults=TableSettings(primary_keys=keys, options=options, column_types=TYPES), slots=slots
    )
    found: list[Any] = []
    number = 0
    for batch in batches:
        for key, kind, text, position, partition in batch:
            number += 1
            if options["bucket"] == "-2" and text == UNAVAILABLE:
                text = None  # refused there
            row = {"id": key} if kind == DELETE else {"id": key, "n": number, "text": text}
            change = Change(row, kind, position=position, snapshot=position < 0)
            rig.produce(record(change), partition=partition)
        with (
            mock.patch.object(map_side_dedup, "_LEAST_ROWS", least),
            mock.patch.object(decode_stage, "shared_data_format", lambda *_: FORMAT),
        ):
            done = rig.run()
        rows = rig.rows("orders") if options["bucket"] != "-2" else []
        found.append((rows, dict(done.counts.rows), dict(done.counts.skipped), done.reached))
    return found


@settings(max_examples=25, deadline=None)
@given(batches(), st.sampled_from(OPTIONS), st.integers(1, 3))
@example(
    [[("a", 0, "x", 9, 0), ("a", 2, "x", 5, 0), ("a", 2, "y", 7, 1)]], {"bucket": "-1"}, 1
)  # one partition went back in the source's log
@example(
    [[("a", 0, "x", 1, 0), ("a", 2, "y", 2, 0), ("a", 2, UNAVAILABLE, 3, 1)]], {"bucket": "1"}, 1
)  # the older value is in another partition
def test_a_table_holds_the_same_whatever_is_left_out(
    changes: list[list[Any]], options: dict[str, str], slots: int
) -> None:
    assert after(changes, options, slots, 1) == after(changes, options, slots, 1 << 30)

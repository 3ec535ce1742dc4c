"""Random batches of moving keys against a dictionary, with lost tries and lost memory between."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.cross_partition import assigner as cross_partition
from ingestd.paimon.table.cross_partition.index_cache import IndexCache
from ingestd.paimon.table.read.table_read import read_table
from tests.support.moving_keys import Batch, load_buckets
from tests.support.native_tables import native_table

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
COLUMNS = [("id", "INT"), ("day", "STRING"), ("n", "INT")]

days = st.sampled_from(["a", "b", None])
changes = st.tuples(st.integers(0, 7), days, st.sampled_from([INSERT, UPDATE_AFTER, DELETE]))
batches = st.tuples(
    st.lists(changes, min_size=1, max_size=12),
    st.sampled_from(["runs", "runs", "is tried twice", "is lost", "forgets"]),
)


@given(st.lists(batches, min_size=1, max_size=6), st.sampled_from([20, 200, 1 << 20]))
@settings(max_examples=40)
def test_every_key_is_where_its_last_row_said_and_nowhere_else(
    run: list[tuple[list[tuple[int, Any, int]], str]], limit: int
) -> None:
    table = native_table(
        "/w",
        COLUMNS,
        keys=["id"],
        partitions=["day"],
        options={"dynamic-bucket.target-row-num": "2"},
        io=MemoryFileIO(),
    )
    model: dict[int, dict[str, Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_partition, "INDEX_CACHE", IndexCache(limit))
        for number, (events, fate) in enumerate(run):
            rows = [
                {"id": key, "day": day, "n": number * 100 + at, "_kind": kind}
                for at, (key, day, kind) in enumerate(events)
            ]
            if fate == "forgets":
                patch.setattr(cross_partition, "INDEX_CACHE", IndexCache(limit))
            batch = Batch(table).write(rows)
            if fate == "is lost":
                continue
            if fate == "is tried twice":
                batch = batch.write(rows)
            assert batch.commit().status == "committed"
            for row in rows:
                model.pop(row["id"], None)
                if row["_kind"] != DELETE:
                    model[row["id"]] = {name: row[name] for name in ("id", "day", "n")}
            found = sorted(read_table(table).to_pylist(), key=lambda row: row["id"])
            assert found == [model[key] for key in sorted(model)]
    places = load_buckets(table)
    assert {key: [day for day, _ in found] for key, found in places.items()} == {
        key: [row["day"]] for key, row in model.items()
    }

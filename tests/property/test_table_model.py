"""A primary-key table against a dictionary: what was written last is what is read."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.table.buckets.bucket_assigner import DynamicBucketAssigner
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.examples import examples
from tests.support.native_tables import native_table, put

KEYS = st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "ab", "é", "longer than seven", "𝄞"]))
ROWS = st.tuples(KEYS, st.none() | st.integers(-5, 5), st.sampled_from([0, 0, 0, 2, 1, 3]))
OPTIONS = st.sampled_from(
    [
        {"bucket": "1"},
        {"bucket": "3"},
        {"dynamic-bucket.target-row-num": "2"},
        {"dynamic-bucket.target-row-num": "2", "dynamic-bucket.max-buckets": "2"},
        {"bucket": "1", "target-file-size": "1 b"},
    ]
)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.lists(ROWS, min_size=1, max_size=12), max_size=5), OPTIONS, st.booleans())
def test_reads_are_what_a_dictionary_would_hold(
    batches: list[list[Any]], options: dict[str, str], partitioned: bool
) -> None:
    columns = [("p", "INT"), ("k", "STRING"), ("v", "INT")]
    partitions = ["p"] if partitioned else []
    table = native_table(
        "/w", columns, keys=["p", "k"], partitions=partitions, options=options, io=MemoryFileIO()
    )
    model: dict[Any, Any] = {}
    for batch in batches:
        put(table, [{"p": key[0], "k": key[1], "v": v, "_kind": kind} for key, v, kind in batch])
        for key, v, kind in batch:
            if kind in (1, 3):
                model.pop(key, None)
            else:
                model[key] = v
    rows = read_table(table).to_pylist()
    assert {(row["p"], row["k"]): row["v"] for row in rows} == model
    assert len(rows) == len(model)
    assert verify(table) == []
    changed = {(row["p"], row["k"]) for row in read_changelog(table).to_pylist()}
    assert changed == {key for batch in batches for key, _, _ in batch}


class _OneByOne:
    """The rules of the specification, one hash at a time. Specification: Bucket."""

    def __init__(self, own: int, assigners: int, target: int) -> None:
        self._own, self._assigners, self._target = own, assigners, target
        self._known: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def assign(self, hashed: int) -> int:
        if hashed not in self._known:
            free = [b for b, count in sorted(self._counts.items()) if count < self._target]
            unused = (b for b in range(self._own, 10_000, self._assigners) if b not in self._counts)
            bucket = free[0] if free else next(unused)
            self._counts[bucket] = self._counts.get(bucket, 0) + 1
            self._known[hashed] = bucket
        return self._known[hashed]


@given(
    st.lists(st.lists(st.integers(-20, 20) | st.integers(-(2**31), 2**31 - 1), max_size=30)),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_whole_batches_get_the_buckets_of_hashes_one_by_one(
    batches: list[list[int]], target: int, assigners: int, number: int
) -> None:
    options = {"dynamic-bucket.target-row-num": str(target)}
    table = native_table("/w", [("k", "INT")], keys=["k"], options=options, io=MemoryFileIO())
    model = _OneByOne(number % assigners, assigners, target)
    index: dict[int, Any] = {}
    for batch in batches:
        assigner = DynamicBucketAssigner(table, EMPTY_ROW, tuple(index.values()), number, assigners)
        found = assigner.assign(np.array(batch, np.int32)).tolist()
        assert found == [model.assign(hashed) for hashed in batch]
        index |= {entry.bucket: entry for entry in assigner.prepare_commit()}

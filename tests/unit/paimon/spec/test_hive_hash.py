"""Hashes as Hive has them, held against vectors of Java Paimon."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.hive_hash import hive_buckets, hive_hashes
from tests.support.format_vectors import vector_type, vector_value, vectors

ROWS: list[dict[str, Any]] = vectors("hive_bucket")
KINDS = sorted({row["types"][0] for row in ROWS if len(row["types"]) == 1})


def _named(row: dict[str, Any]) -> str:
    return json.dumps([row["types"], row["values"]])


@pytest.mark.parametrize("row", ROWS, ids=map(_named, ROWS))
def test_buckets_are_those_of_java(row: dict[str, Any]) -> None:
    types = [vector_type(text) for text in row["types"]]
    values = [vector_value(t, raw) for t, raw in zip(types, row["values"], strict=True)]
    columns = [column_of([v] * 2, t) for t, v in zip(types, values, strict=True)]
    hashes = hive_hashes(columns, types)
    found = {n: hive_buckets(hashes, int(n)).tolist() for n in row["buckets"]}
    assert found == {n: [bucket] * 2 for n, bucket in row["buckets"].items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_hashes_as_its_cells_do_wherever_they_stand(kind: str) -> None:
    t = vector_type(kind)
    own = [row for row in ROWS if row["types"] == [kind]]
    values = [None, *(vector_value(t, row["values"][0]) for row in own)]
    largest = str(2**31 - 1)
    expected = [0, *(row["buckets"][largest] for row in own)]
    column = column_of([*values, *values], t)
    chunks = pa.chunked_array([column.slice(1, 3), column.slice(4)])
    assert hive_buckets(hive_hashes([column], [t]), 2**31 - 1).tolist() == expected * 2
    assert hive_buckets(hive_hashes([chunks], [t]), 2**31 - 1).tolist() == (expected * 2)[1:]


def test_hashes_are_signed_and_no_rows_have_none() -> None:
    t = parse_type("INT")
    assert hive_hashes([pa.array([-5], pa.int32())], [t]).tolist() == [-5]
    for name in ("INT", "STRING", "DECIMAL(20, 2)", "DOUBLE", "BIGINT"):
        none = column_of([], parse_type(name))
        assert hive_hashes([none], [parse_type(name)]).dtype == np.int32


def test_what_hive_cannot_hash_is_a_programming_error() -> None:
    t = parse_type("TIMESTAMP(3)")
    with pytest.raises(ValueError, match="TIMESTAMP"):
        hive_hashes([column_of([0], t)], [t])
    with pytest.raises(ValueError, match="without columns"):
        hive_hashes([], [])

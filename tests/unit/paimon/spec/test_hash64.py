from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.hash64 import hash_values, is_hashable
from tests.support.format_vectors import vector_type, vector_value, vectors


@pytest.mark.parametrize("case", vectors("bloom_filters"), ids=lambda case: case["type"])
def test_values_are_hashed_as_java_does(case: Any) -> None:
    t = vector_type(case["type"])
    column = column_of([vector_value(t, raw) for raw in case["values"]], t)
    wanted = [one for one in case["hash64"] if one is not None]
    assert hash_values(column, t).view(np.int64).tolist() == wanted


# Published values of xxHash64 with seed 0.
XXHASH = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
}


@pytest.mark.parametrize("value", XXHASH, ids=str)
def test_bytes_are_hashed_by_xxhash64(value: bytes) -> None:
    t = parse_type("BYTES")
    assert hash_values(column_of([value], t), t).tolist() == [XXHASH[value]]


def test_a_hash_does_not_depend_on_the_neighbours() -> None:
    t = parse_type("STRING")
    texts = ["x" * n for n in (0, 1, 3, 4, 7, 8, 12, 31, 32, 33, 40, 64, 100)]
    alone = [hash_values(column_of([text], t), t)[0] for text in texts]
    column = column_of(["skipped", *texts, None, *texts], t).slice(1)
    assert hash_values(column, t).tolist() == alone * 2
    assert hash_values(pa.chunked_array([column, column]), t).tolist() == alone * 4


def test_some_types_have_no_hash() -> None:
    for text in ("BOOLEAN", "DECIMAL(5, 1)"):
        t = parse_type(text)
        assert not is_hashable(t)
        with pytest.raises(ValueError, match="no 64-bit hash"):
            hash_values(column_of([], t), t)

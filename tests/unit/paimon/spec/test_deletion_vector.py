from typing import Any

import numpy as np
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.deletion_vector import (
    decode_deletion_vector,
    decode_dv_index,
    encode_deletion_vector,
    encode_dv_index,
)
from ingestd.paimon.spec.index_manifest import DeletionVectorRange
from tests.support.format_vectors import vectors

CASES = vectors("deletion_vectors")
RANGE = DeletionVectorRange("a", 1, 24, 2)
INDEX = bytes.fromhex(vectors("dv_index_files")[0]["bytes"])


def positions(case: Any) -> list[int]:
    return case.get("positions") or list(range(*case.get("positions_range", (0, 0))))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"v{c['version']}-{c['cardinality']}")
def test_vectors_of_java_are_understood(case: Any) -> None:
    found = decode_deletion_vector(bytes.fromhex(case["bytes"]), "f")
    assert found.tolist() == positions(case)
    assert len(found) == case["cardinality"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"v{c['version']}-{c['cardinality']}")
def test_vectors_are_written_as_java_does(case: Any) -> None:
    deleted, wide = np.array(positions(case), np.int64), case["version"] == 2
    assert encode_deletion_vector(deleted, bitmap64=wide).hex() == case["bytes"]
    _, (place,) = encode_dv_index({"a": deleted}, bitmap64=wide)
    assert (place.offset, place.length) == (1, case["meta_length"])
    assert place.cardinality == case["cardinality"]


@pytest.mark.parametrize("case", vectors("dv_index_files"), ids=["v1", "v2"])
def test_index_files_of_java_are_understood(case: Any) -> None:
    (one,) = case["ranges"]
    place = DeletionVectorRange(one["f0"], one["f1"], one["f2"], one["_CARDINALITY"])
    found = decode_dv_index(bytes.fromhex(case["bytes"]), (place,), "f")
    assert {name: rows.tolist() for name, rows in found.items()} == {one["f0"]: [1, 2]}


def test_several_vectors_follow_each_other() -> None:
    wanted = {"a": [0, 7], "b": [], "c": list(range(500))}
    data, ranges = encode_dv_index({n: np.array(rows, np.int64) for n, rows in wanted.items()})
    found = decode_dv_index(data, ranges, "f")
    assert {name: rows.tolist() for name, rows in found.items()} == wanted


def test_an_index_file_without_vectors_is_one_byte() -> None:
    assert encode_dv_index({}) == (b"\x01", ())


@pytest.mark.parametrize("place", range(len(INDEX)))
def test_every_flipped_byte_is_found(place: int) -> None:
    broken = bytearray(INDEX)
    broken[place] ^= 0x10
    with pytest.raises(FormatError, match="deletion vectors f"):
        decode_dv_index(bytes(broken), (RANGE,), "f")


@pytest.mark.parametrize("length", range(len(INDEX)))
def test_every_truncation_is_found(length: int) -> None:
    with pytest.raises(FormatError, match="deletion vectors f"):
        decode_dv_index(INDEX[:length], (RANGE,), "f")


def test_another_cardinality_than_promised_is_found() -> None:
    with pytest.raises(FormatError, match="they delete 2 rows, expected 3"):
        decode_dv_index(INDEX, (DeletionVectorRange("a", 1, 24, 3),), "f")


def test_positions_past_31_bits_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        encode_deletion_vector(np.array([2**31], np.int64))

"""Footers survive being read and written again."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.paimon.format.parquet_footer import ThriftReader, encode_struct


def _footer() -> bytes:
    sink = io.BytesIO()
    columns = {f"c{i}": pa.array([i, None], pa.int64()) for i in range(20)}
    pq.write_table(pa.table(columns | {"t": ["a", "b"]}), sink)
    data = sink.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


def test_a_footer_comes_back_byte_for_byte() -> None:
    footer = _footer()
    assert encode_struct(ThriftReader(footer).struct()) == footer


def test_numbers_flags_and_long_lists_come_back() -> None:
    struct: list[list[Any]] = [
        [1, 5, -1], [40, 6, 2**40], [41, 1, True], [42, 1, False], [43, 3, 7],
        [44, 9, (5, list(range(-20, 20)))], [45, 12, [[1, 8, b"x" * 300]]], [46, 7, b"12345678"],
    ]  # fmt: skip
    assert encode_struct(ThriftReader(encode_struct(struct)).struct()) == encode_struct(struct)
    assert ThriftReader(encode_struct(struct)).struct()[2][2] is True


def test_broken_bytes_are_an_error_and_no_endless_loop() -> None:
    footer = _footer()
    for end in range(0, len(footer), 7):
        with pytest.raises((IndexError, ValueError)):
            ThriftReader(footer[:end]).struct()
    with pytest.raises(ValueError, match="too deep"):
        ThriftReader(b"\x1c" * 200).struct()


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"\x19" + b"\x19" * 100_000, "too deep"), (b"\x15" + b"\xff" * 1000, "64 bits")],
    ids=["lists-in-lists", "number"],
)
def test_bytes_that_were_made_to_cost_much_are_an_error(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ThriftReader(data).struct()

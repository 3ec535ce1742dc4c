"""Metadata columns follow from the offsets of rows; a record may have several rows."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.errors import ConfigError
from ingestd.ingest.computed.metadata_columns import (
    METADATA_TYPES,
    check_metadata,
    metadata_column,
    metadata_type,
    needs_headers,
)
from ingestd.paimon.spec.arrow import to_arrow_type

CHUNK = RecordChunk(
    topic="t",
    partition=4,
    offsets=np.array([10, 12, 15]),
    timestamps=np.array([1000, -1, 3000]),
    keys=[b"a", None, b"c"],
    values=[b'{"ts": 7}', b"{", b'{"ts": 9}'],
    headers=[[("a", b"x"), ("b", None), ("a", "ä".encode())], None, [("a", b"\xff")]],
    timestamp_types=[1, 0, 2],
)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("topic", ["t"] * 4),
        ("partition", [4] * 4),
        ("offset", [10, 12, 12, 15]),
        ("key", [b"a", None, None, b"c"]),
        ("timestamp", [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None, None,
                       datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)]),
        ("op_ts", [datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC), None, None,
                   datetime(1970, 1, 1, 0, 0, 9, tzinfo=UTC)]),
        ("database_name", ["d"] * 4),
        ("schema_name", [None] * 4),
        ("table_name", ["orders"] * 4),
        ("timestamp_type", ["CreateTime", None, None, "LogAppendTime"]),
        ("headers", [[("a", "ä".encode()), ("b", None)], [], [], [("a", b"\xff")]]),
        ("headers.a", ["ä", None, None, "\ufffd"]),
        ("headers.b", [None] * 4),
    ],
)  # fmt: skip
def test_values(name: str, wanted: list[Any]) -> None:
    source = SourceTable("d", None, "orders")
    values = metadata_column(name, CHUNK, source, np.array([10, 12, 12, 15]), "maxwell-json")
    assert values.to_pylist() == wanted
    assert values.type == to_arrow_type(metadata_type(name))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("topic", "ofset"), "unknown metadata column 'ofset'; known are: topic"),
        (("topic", "topic"), "'topic' is listed twice"),
        (("headers.",), "unknown metadata column 'headers.'"),
        (("header.a",), "known are: topic"),
        (("topic", "headers.topic"), "topic and headers.topic have the same name: topic"),
    ],
)
def test_names_that_mean_nothing_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_metadata(names)


def test_all_metadata_columns_are_taken() -> None:
    check_metadata(tuple(METADATA_TYPES))


def test_a_chunk_that_was_read_without_headers_has_none() -> None:
    plain = replace(CHUNK, headers=None, timestamp_types=None)
    for name, wanted in (("headers", []), ("headers.a", None), ("timestamp_type", None)):
        values = metadata_column(name, plain, SourceTable("d", None, "t"), plain.offsets, "json")
        assert values.to_pylist() == [wanted] * 3


def test_headers_are_read_only_for_columns_that_need_them() -> None:
    assert all(needs_headers([name]) for name in ("headers", "headers.a", "timestamp_type"))
    assert not needs_headers(["topic", "timestamp", "key"])


def test_records_that_are_taken_keep_their_timestamp_types() -> None:
    assert CHUNK.take(np.array([2, 0])).timestamp_types == [2, 1]


def test_a_header_that_is_called_headers_is_one_text() -> None:
    headers = [[("headers", b"x")] for _ in CHUNK.keys]
    source = SourceTable("db", "shop", "orders")
    chunk = replace(CHUNK, headers=headers)
    values = metadata_column("headers.headers", chunk, source, chunk.offsets[:1], "maxwell-json")
    assert values.to_pylist() == ["x"]

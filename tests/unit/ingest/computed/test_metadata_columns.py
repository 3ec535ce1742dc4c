"""Metadata columns follow from the offsets of rows; a record may have several rows."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.errors import ConfigError
from ingestd.ingest.computed.metadata_columns import METADATA_TYPES, check_metadata, metadata_column
from ingestd.paimon.spec.arrow import to_arrow_type

CHUNK = RecordChunk(
    topic="t",
    partition=4,
    offsets=np.array([10, 12, 15]),
    timestamps=np.array([1000, -1, 3000]),
    keys=[b"a", None, b"c"],
    values=[b'{"ts": 7}', b"{", b'{"ts": 9}'],
    headers=None,
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
    ],
)  # fmt: skip
def test_values(name: str, wanted: list[Any]) -> None:
    source = SourceTable("d", None, "orders")
    values = metadata_column(name, CHUNK, source, np.array([10, 12, 12, 15]), "maxwell-json")
    assert values.to_pylist() == wanted
    assert values.type == to_arrow_type(METADATA_TYPES[name])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("topic", "ofset"), "unknown metadata column 'ofset'; known are: topic"),
        (("topic", "topic"), "'topic' is listed twice"),
        (("timestamp_type",), "'timestamp_type' is not supported: the reader"),
    ],
)
def test_names_that_mean_nothing_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_metadata(names)


def test_all_that_there_are_are_taken() -> None:
    check_metadata(tuple(METADATA_TYPES))

"""Values as the source database prints them; geometries of MySQL as GeoJSON."""

import math
import struct

import pyarrow as pa
import pytest

from ingestd.cdc.columns.source_text import geometry_json, read_source_texts
from ingestd.paimon.spec.data_types import DataType


@pytest.mark.parametrize(("root", "text"), [("FLOAT", "1e39"), ("DOUBLE", "-1e400")])
def test_a_number_out_of_range_does_not_become_infinite(root: str, text: str) -> None:
    with pytest.raises(OverflowError, match=f"out of range of {root}"):
        read_source_texts(pa.array(["1.5", text]), DataType(root))
    named = read_source_texts(pa.array(["1.5", "-Infinity", None]), DataType(root))
    assert named.to_pylist() == [1.5, -math.inf, None]


def text(*parts: bytes, srid: int = 0) -> str:
    return (struct.pack("<I", srid) + b"".join(parts)).decode("latin-1")


def point(x: float, y: float, order: str = "<") -> bytes:
    return struct.pack(f"{order}BIdd", order == "<", 1, x, y)


LINE = struct.pack("<BIIdddd", 1, 2, 2, 0, 0, 1, 1)
RING = struct.pack("<BIIIdddd", 1, 3, 1, 2, 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (text(point(1, 2), srid=4326), '{"type":"Point","coordinates":[1,2],"srid":4326}'),
        (text(point(1, 2, ">")), '{"type":"Point","coordinates":[1,2],"srid":0}'),
        (text(LINE), '{"type":"LineString","coordinates":[[0,0],[1,1]],"srid":0}'),
        (text(RING), '{"type":"Polygon","coordinates":[[[0,0],[1,1]]],"srid":0}'),
        (
            text(struct.pack("<BII", 1, 4, 2), point(0, 0), point(1, 1)),
            '{"type":"MultiPoint","coordinates":[[0,0],[1,1]],"srid":0}',
        ),
        (
            text(struct.pack("<BII", 1, 7, 1), point(0, 0)),
            '{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[0,0]}],'
            '"srid":0}',
        ),
    ],
)
def test_geometry(value: str, wanted: str) -> None:
    assert geometry_json(value) == wanted


@pytest.mark.parametrize(
    "value",
    [
        "",
        "abc",
        text(point(1, 2)[:-1]),
        text(point(1, 2), b"x"),
        text(struct.pack("<BI", 1, 99)),
        text(struct.pack("<BII", 1, 2, 2**31)),
        text(struct.pack("<BII", 1, 4, 1), LINE[:9]),
        text(struct.pack("<BIIBII", 1, 4, 1, 1, 7, 0)),
    ],
)
def test_bytes_that_are_no_geometry_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="not a geometry"):
        geometry_json(value)

"""Convert MySQL geometries (four bytes of SRID, then well-known binary) to GeoJSON."""

import json
import struct
from typing import Any

_NAMES = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
}
_COLLECTION = 7


def geometry_json(text: str) -> str:
    """Return GeoJSON, with the SRID, for a geometry whose bytes are the characters of `text`.

    Raises ValueError if the bytes are not a valid geometry.
    """
    data = text.encode("latin-1")
    reader = _Reader(data)
    try:
        (srid,) = struct.unpack_from("<I", data)
        geometry = reader.geometry()
    except struct.error as error:
        raise ValueError(f"not a geometry: {error}") from error
    if reader.offset != len(data):
        raise ValueError("not a geometry: bytes are left over")
    return json.dumps(geometry | {"srid": srid}, separators=(",", ":"))


class _Reader:
    """A reader of the well-known binary of a geometry, which starts at the fifth byte."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self.offset = 4

    def geometry(self) -> dict[str, Any]:
        """Read a geometry as a GeoJSON object."""
        (order,) = self._take("B")
        self._order = "<" if order else ">"
        (kind,) = self._take("I")
        name = _NAMES.get(kind)
        if name is None:
            raise ValueError(f"not a geometry: type {kind}")
        if kind == _COLLECTION:
            return {"type": name, "geometries": [self.geometry() for _ in range(self._count())]}
        if kind > 3:
            members = [self.geometry() for _ in range(self._count())]
            if any("coordinates" not in member for member in members):
                raise ValueError("not a geometry: a collection inside of another kind")
            return {"type": name, "coordinates": [member["coordinates"] for member in members]}
        read = (self._point, self._points, self._rings)[kind - 1]
        return {"type": name, "coordinates": read()}

    def _point(self) -> list[float]:
        return [int(n) if n.is_integer() else n for n in self._take("dd")]

    def _points(self) -> list[Any]:
        return [self._point() for _ in range(self._count())]

    def _rings(self) -> list[Any]:
        return [self._points() for _ in range(self._count())]

    def _count(self) -> int:
        (count,) = self._take("I")
        if count > len(self._data):
            raise ValueError("not a geometry: more parts than bytes")
        return int(count)

    def _take(self, layout: str) -> tuple[Any, ...]:
        layout = self._order + layout
        values = struct.unpack_from(layout, self._data, self.offset)
        self.offset += struct.calcsize(layout)
        return values

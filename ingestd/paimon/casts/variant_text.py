"""Format VARIANT values as JSON text, as in Java.

A value is a header byte (two bits for its kind, six for details) followed by its content; field
names are stored once, in the metadata.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet
"""

import base64
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.casts.java_double import java_double
from ingestd.paimon.casts.json_text import quoted
from ingestd.paimon.casts.value_text import date_texts, timestamp_texts

_PRIMITIVE, _SHORT_TEXT, _ARRAY = 0, 1, 3
_DEEPEST = 150


def variant_text(value: bytes, metadata: bytes) -> str:
    """Return a VARIANT value as JSON. Raises FormatError if the bytes are invalid."""
    try:
        return _Variant(value, metadata).text(0, 0)
    except (ValueError, IndexError, struct.error, KeyError, OverflowError) as error:
        raise FormatError(f"{len(value)} bytes are no variant: {error!r}") from error


@dataclass(frozen=True, slots=True)
class _Variant:
    value: bytes
    metadata: bytes

    def text(self, at: int, depth: int) -> str:
        """Return the JSON of the value that begins at a position."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        kind, detail = self.value[at] & 3, self.value[at] >> 2
        if kind == _PRIMITIVE:
            return _PRIMITIVES[detail](self.value, at + 1)
        if kind == _SHORT_TEXT:
            return _quoted(_slice(self.value, at + 1, detail))
        if kind == _ARRAY:
            return f"[{','.join(self._items(at, detail, depth))}]"
        return f"{{{','.join(self._fields(at, detail, depth))}}}"

    def _items(self, at: int, detail: int, depth: int) -> Iterator[str]:
        width, count_width = (detail & 3) + 1, 4 if detail >> 2 & 1 else 1
        count = _unsigned(self.value, at + 1, count_width)
        offsets = at + 1 + count_width
        data = offsets + (count + 1) * width
        for i in range(count):
            yield self.text(data + _unsigned(self.value, offsets + i * width, width), depth + 1)

    def _fields(self, at: int, detail: int, depth: int) -> Iterator[str]:
        width, id_width = (detail & 3) + 1, (detail >> 2 & 3) + 1
        count_width = 4 if detail >> 4 & 1 else 1
        count = _unsigned(self.value, at + 1, count_width)
        ids = at + 1 + count_width
        offsets = ids + count * id_width
        data = offsets + (count + 1) * width
        for i in range(count):
            name = self._name(_unsigned(self.value, ids + i * id_width, id_width))
            position = data + _unsigned(self.value, offsets + i * width, width)
            yield f"{name}:{self.text(position, depth + 1)}"

    def _name(self, number: int) -> str:
        width = (self.metadata[0] >> 6) + 1
        count = _unsigned(self.metadata, 1, width)
        if number >= count:
            raise ValueError(f"there is no name {number}")
        start = _unsigned(self.metadata, 1 + (number + 1) * width, width)
        end = _unsigned(self.metadata, 1 + (number + 2) * width, width)
        return _quoted(_slice(self.metadata, 1 + (count + 2) * width + start, end - start))


def _slice(data: bytes, start: int, size: int) -> bytes:
    if size < 0 or start + size > len(data):
        raise ValueError(f"{size} bytes at {start} are outside the value")
    return data[start : start + size]


def _unsigned(data: bytes, start: int, width: int) -> int:
    return int.from_bytes(_slice(data, start, width), "little")


def _signed(data: bytes, start: int, width: int) -> int:
    return int.from_bytes(_slice(data, start, width), "little", signed=True)


def _quoted(text: bytes) -> str:
    return quoted(text.decode())


def _sized(data: bytes, at: int) -> bytes:
    return _slice(data, at + 4, _unsigned(data, at, 4))


def _decimal(data: bytes, at: int, width: int) -> str:
    scale, number = data[at], _signed(data, at + 1, width)
    digits = f"{abs(number):0{scale + 1}d}"
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :].rstrip("0")
    return f"{'-' if number < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


def _double(data: bytes, at: int) -> str:
    (number,) = struct.unpack_from("<d", data, at)
    return _number(java_double(number))


def _float(data: bytes, at: int) -> str:
    (number,) = struct.unpack_from("<f", data, at)
    # The shortest decimal that is this float and no other.
    return _number(java_double(float(str(np.float32(number)))))


def _number(text: str) -> str:
    return text if text[-1].isdigit() else f'"{text}"'


def _date(data: bytes, at: int) -> str:
    days = pa.array([_signed(data, at, 4)], pa.int32()).cast(pa.date32())
    return f'"{date_texts(days)[0].as_py()}"'


def _timestamp(data: bytes, at: int, suffix: str) -> str:
    micros = pa.array([_signed(data, at, 8)], pa.int64()).cast(pa.timestamp("us"))
    text = timestamp_texts(micros, 6, "")[0].as_py()
    return f'"{text.rstrip("0").rstrip(".").replace("T", " ")}{suffix}"'


def _integer(width: int) -> Callable[[bytes, int], str]:
    return lambda data, at: str(_signed(data, at, width))


_PRIMITIVES: Mapping[int, Callable[[bytes, int], str]] = {
    0: lambda data, at: "null",
    1: lambda data, at: "true",
    2: lambda data, at: "false",
    3: _integer(1),
    4: _integer(2),
    5: _integer(4),
    6: _integer(8),
    7: _double,
    8: lambda data, at: _decimal(data, at, 4),
    9: lambda data, at: _decimal(data, at, 8),
    10: lambda data, at: _decimal(data, at, 16),
    11: _date,
    12: lambda data, at: _timestamp(data, at, "+00:00"),
    13: lambda data, at: _timestamp(data, at, ""),
    14: _float,
    15: lambda data, at: f'"{base64.b64encode(_sized(data, at)).decode()}"',
    16: lambda data, at: _quoted(_sized(data, at)),
    20: lambda data, at: f'"{uuid.UUID(bytes=_slice(data, at, 16))}"',
}
"""Detail of a primitive's header -> function that formats the value at a position."""

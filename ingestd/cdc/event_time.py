"""The time of a change in its source database, read from JSON messages.

No other field is decoded. The messages of a batch are read by Arrow's JSON reader, and a single
message by msgspec.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

Path = tuple[str, ...]
"""The names of nested fields, from the outermost to the innermost."""
Values = Any
"""An Arrow array; the stubs have no common type that supports computation."""

_LATEST = 1 << 53


@dataclass(frozen=True, slots=True)
class EventTime:
    """The field with the time of a change in messages of a JSON format.

    `paths` are tried in order, and the first path with a number is used. `unit` is the number of
    milliseconds in one unit of the number.
    """

    paths: tuple[Path, ...]
    unit: int = 1

    def of_message(self, message: bytes) -> int | None:
        """Return the time of the change in a message, in ms since the epoch.

        Returns None if the message is not valid JSON, or if the time is missing or not between 1
        and 2^53 - 1.
        """
        try:
            document = _decoder(self.paths).decode(message)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        for path in self.paths:
            value: Any = document
            for name in path:
                value = None if value is None else getattr(value, _attribute(name))
            if value is not None:
                time: int = value * self.unit
                return time if 0 < time < _LATEST else None
        return None

    def of_messages(self, messages: Sequence[bytes | None]) -> Values:
        """Return the times of messages as int64 in ms since the epoch, null if a message has none.

        Times out of range are returned as well.
        """
        documents = [message or b"{}" for message in messages]
        try:
            numbers = _read_batch(documents, self.paths)
        except pa.ArrowInvalid:
            numbers = pa.array(
                [_read_one(document, self.paths) for document in documents], pa.int64()
            )
        unit: Values = pa.scalar(self.unit, pa.int64())
        return pc.multiply(numbers, unit)


@cache
def _decoder(paths: tuple[Path, ...]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_struct(paths))


def _struct(paths: tuple[Path, ...]) -> type[msgspec.Struct]:
    """Return a msgspec type that has only the fields of the paths; absent fields are None."""
    inner: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        inner[path[0]].append(path[1:])
    fields: list[tuple[str, Any, Any]] = [
        (
            _attribute(name),
            (int if () in rest else _struct(tuple(rest))) | None,
            msgspec.field(default=None, name=name),
        )
        for name, rest in inner.items()
    ]
    return msgspec.defstruct("Message", fields)


def _attribute(name: str) -> str:
    """Return a valid Python identifier for a field name."""
    return f"field_{name.encode().hex()}"


def _read_one(message: bytes, paths: Sequence[Path]) -> int | None:
    """Return the first integer at one of the paths, or None if there is none.

    Integers of more than 53 bits are skipped. The result is None for invalid JSON, too.
    """
    try:
        document = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for path in paths:
        value = document
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if type(value) is int and abs(value) < _LATEST:
            return value
    return None


def _read_batch(messages: list[bytes], paths: Sequence[Path]) -> Values:
    """Read the number in each message with Arrow; null if a message has none.

    Raises ArrowInvalid if a message is invalid JSON or contains more than one document, or if the
    value at a path is not an integer.
    """
    if not messages:
        return pa.nulls(0, pa.int64())
    document = b"\n".join(messages)
    rows = json.read_json(
        BytesIO(document),
        read_options=json.ReadOptions(use_threads=False, block_size=len(document) + 1),
        parse_options=json.ParseOptions(
            explicit_schema=pa.schema([_field(path) for path in paths]),
            newlines_in_values=False,
            unexpected_field_behavior="ignore",
        ),
    )
    if rows.num_rows != len(messages):
        raise pa.ArrowInvalid("a message contains more than one document")
    columns: list[Values] = [_at(rows, path) for path in paths]
    return pc.coalesce(*columns).combine_chunks()


def _field(path: Path) -> Values:
    """Return the Arrow field of the outermost name of a path, with the other names nested in it."""
    data_type: Values = pa.int64()
    for name in reversed(path[1:]):
        data_type = pa.struct([(name, data_type)])
    return pa.field(path[0], data_type)


def _at(rows: pa.Table, path: Path) -> Values:
    values: Values = rows.column(path[0])
    return pc.struct_field(values, list(path[1:])) if len(path) > 1 else values

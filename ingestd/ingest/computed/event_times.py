"""When a change was made, by what its message says beside the row.

Only the one number is read of a message, by Arrow's reader of JSON, for all messages in one call.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from ingestd.errors import UnsupportedError
from ingestd.ingest.values.row_groups import Values

_MAX_TIME = 1 << 53
_DEBEZIUM = (("payload", "source", "ts_ms"), ("source", "ts_ms"))
_PLACES: Mapping[str, tuple[int, tuple[tuple[str, ...], ...]]] = {
    "debezium-json": (1, _DEBEZIUM),
    "debezium-bson": (1, _DEBEZIUM),
    "canal-json": (1, (("es",),)),
    "maxwell-json": (1000, (("ts",),)),
}
"""By data format: milliseconds of one unit, and where in a message the number may be."""


def event_times(data_format: str, messages: Sequence[bytes | None]) -> Values:
    """Milliseconds since 1970 of each message; null where it does not say.

    UnsupportedError for a data format whose messages are not known to say it.
    """
    if data_format not in _PLACES:
        raise UnsupportedError(
            f"metadata column 'op_ts': the data format '{data_format}' is not known to tell the "
            f"time of a change, only {', '.join(sorted(_PLACES))}; leave it out, or take "
            "'timestamp', the time of the record"
        )
    unit, places = _PLACES[data_format]
    there = [message or b"{}" for message in messages]
    try:
        times = _read_at_once(there, places)
    except pa.ArrowInvalid:
        times = pa.array([_read_one(message, places) for message in there], pa.int64())
    one: Values = pa.scalar(unit, pa.int64())
    return pc.multiply(times, one)


def _read_one(message: bytes, places: Sequence[tuple[str, ...]]) -> int | None:
    """The number in a message that may be odd; null if it is not there."""
    try:
        document = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for place in places:
        found = document
        for name in place:
            found = found.get(name) if isinstance(found, dict) else None
        if type(found) is int and abs(found) < _MAX_TIME:
            return found
    return None


def _read_at_once(messages: list[bytes], places: Sequence[tuple[str, ...]]) -> Values:
    """ArrowInvalid if a message is odd, or two of them are not told apart."""
    if not messages:
        return pa.nulls(0, pa.int64())
    document = b"\n".join(messages)
    rows = json.read_json(
        BytesIO(document),
        read_options=json.ReadOptions(use_threads=False, block_size=len(document) + 1),
        parse_options=json.ParseOptions(
            explicit_schema=pa.schema([_field(place) for place in places]),
            newlines_in_values=False,
            unexpected_field_behavior="ignore",
        ),
    )
    if rows.num_rows != len(messages):
        raise pa.ArrowInvalid("messages run into one another")
    found: list[Values] = [_inside(rows, place) for place in places]
    return pc.coalesce(*found).combine_chunks()


def _field(place: tuple[str, ...]) -> Values:
    """A field that holds the others of its place, one in another."""
    data_type: Values = pa.int64()
    for name in reversed(place[1:]):
        data_type = pa.struct([(name, data_type)])
    return pa.field(place[0], data_type)


def _inside(rows: pa.Table, place: tuple[str, ...]) -> Values:
    values: Values = rows.column(place[0])
    return pc.struct_field(values, list(place[1:])) if len(place) > 1 else values

"""Whether a decoder did with a case what it must do with any: rows or letters, one of them each.

A record never raises, is in exactly one place, and costs no neighbour its row; the native reader
and the decoder in Python make the same of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingestd.cdc.base import (
    DataFormat,
    Decoded,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    SourceTable,
    describe_format,
    format_descriptors,
    load_data_format,
)
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.native_module import native_module
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.fuzz.cases import Case, Message
from tests.support.decoded import in_python, outcome
from tests.support.registered import Registered

_TOPIC = "p.inv.item"
_TWICE = {"debezium-bson"} | {
    format_descriptor.name
    for format_descriptor in format_descriptors()
    if format_descriptor.registry == "optional"
}
"""Formats that have a native reader and a decoder in Python."""
_DECLARED = tuple(
    map(
        parse_type,
        ("DECIMAL(9, 2)", "TIMESTAMP(3)", "BYTES", "TIME(6)", "DATE", "BIGINT", "DOUBLE", "FLOAT",
         "BOOLEAN", "TINYINT", "STRING", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "SMALLINT",
         "DECIMAL(38, 18)"),
    )
)  # fmt: skip


def judge(case: Case) -> None:
    """AssertionError, or whatever a decoder raises, for a case that it does not stand."""
    known, declared = _told(case)
    chunks = [chunk_of(case.sound, 0)]
    chunks += [chunk_of([message], 100 + n) for n, message in enumerate(case.messages)]
    chunks += [chunk_of([*case.messages, *case.sound], 200)]
    learnt = _Counted(decoder_of(case, native=True))
    made = outcome(learnt, chunks, known, declared)
    _Counted(decoder_of(case, native=True)).decode(chunks[-1], known, declared)
    assert not any("refused" in one for one in made), made
    if case.format in _TWICE and native_module() is not None:
        assert made == outcome(decoder_of(case, native=False), chunks, known, declared)


class _Counted:
    """A decoder of whose results every one is looked at."""

    def __init__(self, decoder: DataFormat) -> None:
        self.name = decoder.name
        self._decoder = decoder

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        found = self._decoder.decode(chunk, known, declared)
        _count(found, chunk)
        return found


def decoder_of(case: Case, *, native: bool) -> DataFormat:
    """A new decoder of the case's format, with or without the native extension."""
    schemas = Registered() if describe_format(case.format).registry == "required" else None
    for text in case.schemas if schemas else ():
        schemas.add(text, "PROTOBUF" if case.format == "protobuf" else "AVRO")
    found = load_data_format(case.format, FormatSettings(schemas=schemas, images=case.images))
    return in_python(found) if isinstance(found, JsonChanges) and not native else found


def _told(case: Case) -> tuple[KnownColumns, KnownColumns]:
    """Known columns and declared ones, as the mode of the case says."""
    if not case.knows_table and not case.declares:
        return {}, {}
    sound = decoder_of(case, native=False).decode(chunk_of(case.sound, 0), {}, {})
    known: dict[SourceTable, Mapping[str, DataType]] = {}
    declared: dict[SourceTable, Mapping[str, DataType]] = {}
    for batch in sound.batches:
        if case.knows_table:
            known[batch.source] = {
                name: replace(one, nullable=name not in batch.primary_keys)
                for name, one in batch.types.items()
            }
        if case.declares:
            names = sorted(set(batch.types) - set(batch.primary_keys))
            declared[batch.source] = {
                name: _DECLARED[n % len(_DECLARED)] for n, name in enumerate(names)
            }
    return known, declared


def chunk_of(messages: Sequence[Message], first: int) -> RecordChunk:
    """Messages as records, from the offset `first`."""
    size = len(messages)
    return RecordChunk(
        _TOPIC,
        0,
        np.arange(first, first + size, dtype=np.int64),
        np.full(size, 1_750_000_000_000, np.int64),
        [key for key, _ in messages],
        [value for _, value in messages],
        None,
    )


def _count(decoded: Decoded, chunk: RecordChunk) -> None:
    """Every record is in one place, or is a control message; all arrays are what they say."""
    seen: list[int] = [one.offset for one in (*decoded.rejected, *decoded.truncates)]
    rows: set[int] = set()
    for batch in decoded.batches:
        batch.columns.validate(full=True)
        size = batch.columns.num_rows
        arrays: list[Any] = [batch.row_kind, batch.offset, batch.position, batch.snapshot_row]
        assert {len(array) for array in (*arrays, *batch.unavailable.values())} == {size}
        assert list(batch.columns.column_names) == list(batch.types)
        rows.update(batch.offset.tolist())
    places = [*seen, *rows]
    assert len(places) == len(set(places)), "a record is in two places"
    assert set(places) <= set(chunk.offsets.tolist())
    assert len(places) + decoded.control == len(chunk.values), "a record is lost"
    for rejected_record in decoded.rejected:
        assert rejected_record.stage and rejected_record.reason and rejected_record.message
        rejected_record.message.encode()

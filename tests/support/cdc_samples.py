"""Messages of every data format, with what ingestd makes of each in words."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    FormatSettings,
    RecordChunk,
    load_data_format,
)
from ingestd.cdc.columns.type_mapping import read_type_mapping

SAMPLES = Path(__file__).resolve().parents[1] / "golden" / "cdc" / "samples"
_KINDS = {0: "+I", 1: "-U", 2: "+U", 3: "-D"}


@dataclass(frozen=True, slots=True)
class Sample:
    """A message; `key` and `value` are JSON documents, None: null."""

    name: str
    format: str
    key: Any
    value: Any
    type_mapping: tuple[str, ...]


def samples() -> list[Sample]:
    """All messages, in their order."""
    found = []
    for line in (SAMPLES / "samples.jsonl").read_text("utf-8").splitlines():
        raw = json.loads(line)
        mapping = raw.get("type_mapping")
        names = (mapping,) if mapping else ()
        found.append(Sample(raw["name"], raw["format"], raw["key"], raw["value"], names))
    return found


def expected() -> Mapping[str, tuple[str, ...]]:
    """What ingestd is to make of each message, by name."""
    lines = (SAMPLES / "expected.jsonl").read_text("utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    return {document["name"]: tuple(document["ingestd"]) for document in documents}


def decoded(sample: Sample) -> Decoded:
    """What a decoder that knows nothing makes of a message."""
    settings = FormatSettings(read_type_mapping(sample.type_mapping, sample.format))
    offset = np.zeros(1, np.int64)
    texts = [
        None if one is None else json.dumps(one).encode() for one in (sample.key, sample.value)
    ]
    chunk = RecordChunk("inv.item", 0, offset, offset, [texts[0]], [texts[1]], None)
    return load_data_format(sample.format, settings).decode(chunk, {}, {})


def in_words(found: Decoded) -> tuple[str, ...]:
    """Rows with their types, rejections, truncates and control messages, one a line."""
    lines = [line for batch in found.batches for line in _rows(batch)]
    lines += [
        f"rejected at {rejected_record.stage}: {rejected_record.reason}"
        for rejected_record in found.rejected
    ]
    lines += [f"truncate of {truncate.source.table}" for truncate in found.truncates]
    return (*lines, *["control message"] * found.control)


def _rows(batch: ChangeBatch) -> Iterator[str]:
    names = list(batch.types)
    types = ", ".join(f"{name} {batch.types[name]}" for name in names)
    yield f"{batch.source.table} key [{', '.join(batch.primary_keys)}]: {types}"
    for place, (kind, row) in enumerate(
        zip(batch.row_kind.tolist(), batch.columns.to_pylist(), strict=True)
    ):
        cells = [
            "(unchanged)"
            if name in batch.unavailable and batch.unavailable[name][place]
            else _cell(row[name])
            for name in names
        ]
        yield f"{_KINDS[kind]}({', '.join(cells)})"


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value)

"""Avro files of records with a `_VERSION`: manifest lists, manifests and index manifests.

Records in, bytes out and back, and one error for all that is broken. Logical types are left as
plain numbers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro
"""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.spec import avro_blocks

_OTHER_FORMATS = {b"ORC": "ORC", b"PAR1": "Parquet"}
"""How files of the formats begin that `manifest.format` may name besides Avro."""


def encode_records(
    schema: Mapping[str, Any], version: int, records: Iterable[Mapping[str, Any]]
) -> bytes:
    """Return a container file (codec zstandard) of records, each with its `_VERSION`."""
    text = json.dumps(schema)
    rows = [{"_VERSION": version, **record} for record in records]
    if not rows:
        return avro_blocks.encode_blocks(text, [])
    payload = avro_blocks.encode_records(_block_schema(text), rows)
    return avro_blocks.encode_blocks(text, [(len(rows), payload)])


def decode_records(data: bytes, version: int, source: str) -> list[dict[str, Any]]:
    """Return the records of a container file.

    FormatError names `source` if the file is broken or a record's `_VERSION` is another one;
    UnsupportedError if it has one of the other formats that manifests may have.
    """
    for magic, name in _OTHER_FORMATS.items():
        if data.startswith(magic):
            raise UnsupportedError(
                f"{source} has the manifest format {name}, which is not supported: option "
                "'manifest.format' must be 'avro'"
            )
    try:
        file = avro_blocks.decode_blocks(data)
        schema = _block_schema(file.schema)
        records = [
            record
            for count, payload in file.blocks
            for record in avro_blocks.decode_records(schema, count, payload)
        ]
        found = {record["_VERSION"] for record in records}
    except avro_blocks.BROKEN as error:
        raise FormatError(f"{source} is no readable Avro file: {error!r}") from error
    if found - {version}:
        raise FormatError(
            f"{source} has _VERSION {sorted(found, key=str)}, only {version} is understood"
        )
    return records


def encode_each(
    schema: Mapping[str, Any], version: int, records: Iterable[Mapping[str, Any]]
) -> list[bytes]:
    """Return the bytes of each record by itself, to be kept and packed later, perhaps often."""
    block_schema = _block_schema(json.dumps(schema))
    rows = ({"_VERSION": version, **record} for record in records)
    return [avro_blocks.encode_records(block_schema, [row]) for row in rows]


def pack_encoded(schema: Mapping[str, Any], records: Sequence[bytes]) -> bytes:
    """Return a container file of records that `encode_each` has encoded."""
    blocks = [(len(records), b"".join(records))] if records else []
    return avro_blocks.encode_blocks(json.dumps(schema), blocks)


def join_files(
    schema: Mapping[str, Any], version: int, files: Iterable[bytes]
) -> tuple[int, bytes] | None:
    """Join the records of several container files to one file; return it and their count.

    Nothing is decoded.

    None if some file has another schema or version, or is broken: then they must be read.
    """
    text, mark = json.dumps(schema), avro_blocks.encode_long(version)
    count, payloads = 0, []
    for data in files:
        try:
            file = avro_blocks.decode_blocks(data)
        except avro_blocks.BROKEN:
            return None
        if file.schema != text:
            return None
        for records, payload in file.blocks:
            # Records begin with their version, and one file has one.
            if records and not payload.startswith(mark):
                return None
            count += records
            payloads.append(payload)
    return count, avro_blocks.encode_blocks(text, [(count, b"".join(payloads))])


@functools.lru_cache(maxsize=16)
def _block_schema(text: str) -> avro_blocks.Json:
    return avro_blocks.parse_block_schema(json.loads(text))

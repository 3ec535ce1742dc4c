"""Encode and decode the Avro files of metadata: manifest lists, manifests and index manifests.

Every record has a `_VERSION`. Logical types are decoded as plain numbers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro
"""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.spec import avro_blocks

_OTHER_FORMATS = {b"ORC": "ORC", b"PAR1": "Parquet"}
"""First bytes of the other file formats that `manifest.format` allows."""


def encode_records(
    schema: Mapping[str, Any], version: int, records: Iterable[Mapping[str, Any]]
) -> bytes:
    """Return a zstandard-compressed Avro file of records, each with `version` as its `_VERSION`."""
    text = json.dumps(schema)
    rows = [{"_VERSION": version, **record} for record in records]
    if not rows:
        return avro_blocks.encode_blocks(text, [])
    payload = avro_blocks.encode_records(_block_schema(text), rows)
    return avro_blocks.encode_blocks(text, [(len(rows), payload)])


def decode_records(data: bytes, version: int, source: str) -> list[dict[str, Any]]:
    """Return the records of an Avro file, which must all have `version` as their `_VERSION`.

    Raises FormatError, naming `source`, if the file is damaged or a record has another version, and
    UnsupportedError if the file is in another format than Avro.
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
        versions = {record["_VERSION"] for record in records}
    except avro_blocks.BROKEN as error:
        raise FormatError(f"{source} is no readable Avro file: {error!r}") from error
    if versions - {version}:
        raise FormatError(
            f"{source} has _VERSION {sorted(versions, key=str)}, only {version} is understood"
        )
    return records


def encode_each(
    schema: Mapping[str, Any], version: int, records: Iterable[Mapping[str, Any]]
) -> list[bytes]:
    """Return the encoded bytes of each record, with `version` as its `_VERSION`.

    The bytes can be cached and packed repeatedly.
    """
    block_schema = _block_schema(json.dumps(schema))
    rows = ({"_VERSION": version, **record} for record in records)
    return [avro_blocks.encode_records(block_schema, [row]) for row in rows]


def pack_encoded(schema: Mapping[str, Any], records: Sequence[bytes]) -> bytes:
    """Return a container file of records encoded by `encode_each` with the same schema."""
    blocks = [(len(records), b"".join(records))] if records else []
    return avro_blocks.encode_blocks(json.dumps(schema), blocks)


def join_files(
    schema: Mapping[str, Any], version: int, files: Iterable[bytes]
) -> tuple[int, bytes] | None:
    """Join the records of container files without decoding; return their number and the new file.

    Returns None if the records must be decoded instead: a file has another schema or version, or is
    damaged.
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
            # Records start with their version, and all records of a file have the same.
            if records and not payload.startswith(mark):
                return None
            count += records
            payloads.append(payload)
    return count, avro_blocks.encode_blocks(text, [(count, b"".join(payloads))])


@functools.lru_cache(maxsize=16)
def _block_schema(text: str) -> avro_blocks.Json:
    return avro_blocks.parse_block_schema(json.loads(text))

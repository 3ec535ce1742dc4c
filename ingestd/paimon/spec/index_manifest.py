"""Encode and decode index manifests, and the hash index files that they refer to.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#index-manifest
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ingestd.errors import FormatError
from ingestd.paimon.spec.avro_container import (
    decode_records,
    encode_each,
    pack_encoded,
)
from ingestd.paimon.spec.avro_schemas import INDEX_MANIFEST_SCHEMA
from ingestd.paimon.spec.document_checks import file_name
from ingestd.paimon.spec.manifest import FileKind

INDEX_MANIFEST_VERSION = 1
HASH_INDEX = "HASH"
DELETION_VECTORS_INDEX = "DELETION_VECTORS"


@dataclass(frozen=True, slots=True)
class DeletionVectorRange:
    """The range of bytes of the deletion vector of the data file `data_file_name` in an index file.

    `offset` and `length` are in bytes; `cardinality` is the number of deleted rows, None if
    unknown.
    """

    data_file_name: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True)
class GlobalIndex:
    """Metadata of an index over the rows of several files; it is written back as it was read.

    The range is a range of row ids, the field ids are those of the indexed columns, and the meaning
    of `index_meta` depends on the index type.
    """

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None


@dataclass(frozen=True, slots=True)
class IndexManifestEntry:
    """An index file added to, or deleted from, a bucket, as `kind` states.

    `partition` is a serialized row; `index_type` is a type such as HASH or DELETION_VECTORS;
    `row_count` is the number of entries of the file, `dv_ranges` the range of each deletion vector
    in it, and `global_index` the metadata of an index over several files (both None for other
    types). `file_size` is in bytes; `external_path` is set if the file is outside the table.
    """

    kind: FileKind
    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    file_size: int
    row_count: int
    dv_ranges: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None


def encode_index_records(entries: Iterable[IndexManifestEntry]) -> list[bytes]:
    """Return the encoded index manifest record of each entry, for `pack_index_records`."""
    return encode_each(INDEX_MANIFEST_SCHEMA, INDEX_MANIFEST_VERSION, map(_record, entries))


def pack_index_records(records: Sequence[bytes]) -> bytes:
    """Return the bytes of an index manifest with records encoded by `encode_index_records`."""
    return pack_encoded(INDEX_MANIFEST_SCHEMA, records)


def decode_index_manifest(data: bytes, source: str) -> list[IndexManifestEntry]:
    """Return the entries of an index manifest.

    Raises FormatError, naming `source`, if it is damaged, and UnsupportedError if it is not Avro.
    """
    records = decode_records(data, INDEX_MANIFEST_VERSION, source)
    try:
        return [_entry(record) for record in records]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"index manifest {source} has a wrong entry: {error!r}") from error


def _record(entry: IndexManifestEntry) -> dict[str, Any]:
    ranges = entry.dv_ranges
    return {
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.file_size,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": None if ranges is None else list(map(_range_record, ranges)),
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": _global_record(entry.global_index),
    }


def _range_record(dv_range: DeletionVectorRange) -> dict[str, Any]:
    return {
        "f0": dv_range.data_file_name,
        "f1": dv_range.offset,
        "f2": dv_range.length,
        "_CARDINALITY": dv_range.cardinality,
    }


def _global_record(index: GlobalIndex | None) -> dict[str, Any] | None:
    if index is None:
        return None
    extra = index.extra_field_ids
    return {
        "_ROW_RANGE_START": index.row_range_start,
        "_ROW_RANGE_END": index.row_range_end,
        "_INDEX_FIELD_ID": index.index_field_id,
        "_EXTRA_FIELD_IDS": None if extra is None else list(extra),
        "_INDEX_META": index.index_meta,
    }


def _entry(record: Mapping[str, Any]) -> IndexManifestEntry:
    ranges = record["_DELETIONS_VECTORS_RANGES"]
    return IndexManifestEntry(
        kind=FileKind(record["_KIND"]),
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        index_type=record["_INDEX_TYPE"],
        file_name=file_name(record["_FILE_NAME"]),
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        dv_ranges=None if ranges is None else tuple(map(_range, ranges)),
        # Older writers omit the following fields.
        external_path=record.get("_EXTERNAL_PATH"),
        global_index=_global(record.get("_GLOBAL_INDEX")),
    )


def _range(record: Mapping[str, Any]) -> DeletionVectorRange:
    return DeletionVectorRange(record["f0"], record["f1"], record["f2"], record.get("_CARDINALITY"))


def _global(record: Mapping[str, Any] | None) -> GlobalIndex | None:
    if record is None:
        return None
    extra = record["_EXTRA_FIELD_IDS"]
    return GlobalIndex(
        record["_ROW_RANGE_START"],
        record["_ROW_RANGE_END"],
        record["_INDEX_FIELD_ID"],
        None if extra is None else tuple(extra),
        record["_INDEX_META"],
    )


def encode_hash_index(hashes: npt.NDArray[np.int32]) -> bytes:
    """Return the bytes of a hash index file: the key hashes of a bucket as big-endian int32."""
    return hashes.astype(">i4").tobytes()


def decode_hash_index(data: bytes, source: str) -> npt.NDArray[np.int32]:
    """Return the key hashes of a hash index file.

    Raises FormatError, naming `source`, if it is damaged.
    """
    if len(data) % 4:
        raise FormatError(f"hash index {source} has {len(data)} bytes, not a multiple of 4")
    return np.frombuffer(data, ">i4").astype(np.int32)

"""Encode and decode manifests and manifest lists: the data files added and deleted, in order.

File names, sizes and I/O are handled by `table.metadata` and `table.commit`.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#manifest
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from ingestd.errors import FormatError
from ingestd.paimon.spec.avro_container import decode_records, encode_records, join_files
from ingestd.paimon.spec.avro_schemas import MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from ingestd.paimon.spec.data_file import DataFileMeta, SimpleStats
from ingestd.paimon.spec.document_checks import file_name

MANIFEST_VERSION = 2

BucketKey = tuple[bytes, int]
"""A bucket: the serialized partition row, and its number."""
FileIdentifier = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


class FileKind(IntEnum):
    """The kind of an entry: it adds or deletes its file."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A data file added to, or deleted from, a bucket, as `kind` states.

    `partition` is a serialized row of the partition keys. `total_buckets` is the number of buckets
    at the time the file was written; a number below 1 means that it was not fixed.
    """

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identifier(self) -> FileIdentifier:
        """The identity of the file, which an ADD shares with its DELETE; it includes the level."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_index,
            file.external_path,
        )


class FileTotals(NamedTuple):
    """Number of rows before merging, size in bytes, number of files, and newest creation time."""

    rows: int
    bytes: int
    files: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class ManifestFileMeta:
    """A manifest in a manifest list, with statistics and bounds by which readers can skip it.

    `file_size` is in bytes; added and deleted files are counted by their entries. None for a
    bucket, level or row id bound means unknown.
    """

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


def fold_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the net effect of entries, which are in commit order.

    These are the ADDs whose files are not deleted later, and the DELETEs of files that `entries` do
    not add. Raises FormatError if an ADD follows an ADD or a DELETE of its file that is still in
    effect: file names are never reused.
    """
    live: dict[FileIdentifier, ManifestEntry] = {}
    for entry in entries:
        identifier = entry.identifier
        if entry.kind == FileKind.ADD:
            if identifier in live:
                raise FormatError(
                    f"data file {entry.file.file_name} of bucket {entry.bucket} is added twice "
                    f"at level {entry.file.level}"
                )
            live[identifier] = entry
        elif live.pop(identifier, None) is None:
            live[identifier] = entry
    return list(live.values())


def by_partition(entries: Iterable[ManifestEntry]) -> dict[bytes, list[ManifestEntry]]:
    """Return the entries of each partition, in the order in which partitions first appear."""
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.partition, []).append(entry)
    return groups


def by_bucket(entries: Iterable[ManifestEntry]) -> dict[BucketKey, list[ManifestEntry]]:
    """Return the entries of each bucket, in the order in which buckets first appear."""
    groups: dict[BucketKey, list[ManifestEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.partition, entry.bucket), []).append(entry)
    return groups


def file_totals(entries: Iterable[ManifestEntry]) -> FileTotals:
    """Return the totals of the files added minus those deleted; the time is of all of them."""
    signed = [(1 if entry.kind == FileKind.ADD else -1, entry.file) for entry in entries]
    times = (file.creation_time_ms for _, file in signed)
    return FileTotals(
        sum(sign * file.row_count for sign, file in signed),
        sum(sign * file.file_size for sign, file in signed),
        sum(sign for sign, _ in signed),
        max((time for time in times if time is not None), default=None),
    )


def encode_manifest(entries: Iterable[ManifestEntry]) -> bytes:
    """Encode manifest entries as the bytes of a manifest, an Avro file."""
    return encode_records(
        MANIFEST_SCHEMA, MANIFEST_VERSION, [_entry_record(entry) for entry in entries]
    )


def join_manifests(manifests: Iterable[bytes]) -> tuple[int, bytes] | None:
    """Join the entries of manifests in order, without decoding; return their number and the bytes.

    ADDs and DELETEs are not folded, so this is for manifests without deletions. Returns None if the
    manifests must be decoded instead: another writer encoded them differently, or they are damaged.
    """
    return join_files(MANIFEST_SCHEMA, MANIFEST_VERSION, manifests)


def decode_manifest(data: bytes, source: str) -> list[ManifestEntry]:
    """Return the entries of a manifest in order.

    Raises FormatError, naming `source`, if it is damaged, and UnsupportedError if it is not Avro.
    """
    records = decode_records(data, MANIFEST_VERSION, source)
    try:
        return [_entry(record) for record in records]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"manifest {source} has an invalid entry: {error!r}") from error


def encode_manifest_list(metas: Iterable[ManifestFileMeta]) -> bytes:
    """Encode the entries of a manifest list as the bytes of its Avro file."""
    records = [_meta_record(meta) for meta in metas]
    return encode_records(MANIFEST_LIST_SCHEMA, MANIFEST_VERSION, records)


def decode_manifest_list(data: bytes, source: str) -> list[ManifestFileMeta]:
    """Return the manifests of a manifest list in order.

    Raises FormatError, naming `source`, if it is damaged, and UnsupportedError if it is not Avro.
    """
    records = decode_records(data, MANIFEST_VERSION, source)
    try:
        return [_meta(record) for record in records]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"manifest list {source} has an invalid entry: {error!r}") from error


def _entry_record(entry: ManifestEntry) -> dict[str, Any]:
    return {
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": _file_record(entry.file),
    }


def _entry(record: Mapping[str, Any]) -> ManifestEntry:
    return ManifestEntry(
        FileKind(record["_KIND"]),
        record["_PARTITION"],
        record["_BUCKET"],
        record["_TOTAL_BUCKETS"],
        _file(record["_FILE"]),
    )


def _file_record(file: DataFileMeta) -> dict[str, Any]:
    return {
        "_FILE_NAME": file.file_name,
        "_FILE_SIZE": file.file_size,
        "_ROW_COUNT": file.row_count,
        "_MIN_KEY": file.min_key,
        "_MAX_KEY": file.max_key,
        "_KEY_STATS": _stats_record(file.key_stats),
        "_VALUE_STATS": _stats_record(file.value_stats),
        "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
        "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
        "_SCHEMA_ID": file.schema_id,
        "_LEVEL": file.level,
        "_EXTRA_FILES": list(file.extra_files),
        "_CREATION_TIME": file.creation_time_ms,
        "_DELETE_ROW_COUNT": file.delete_row_count,
        "_EMBEDDED_FILE_INDEX": file.embedded_index,
        "_FILE_SOURCE": file.file_source,
        "_VALUE_STATS_COLS": _listed(file.value_stats_cols),
        "_EXTERNAL_PATH": file.external_path,
        "_FIRST_ROW_ID": file.first_row_id,
        "_WRITE_COLS": _listed(file.write_cols),
    }


def _file(record: Mapping[str, Any]) -> DataFileMeta:
    return DataFileMeta(
        file_name=file_name(record["_FILE_NAME"]),
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        min_key=record["_MIN_KEY"],
        max_key=record["_MAX_KEY"],
        key_stats=_stats(record["_KEY_STATS"]),
        value_stats=_stats(record["_VALUE_STATS"]),
        min_sequence_number=record["_MIN_SEQUENCE_NUMBER"],
        max_sequence_number=record["_MAX_SEQUENCE_NUMBER"],
        schema_id=record["_SCHEMA_ID"],
        level=record["_LEVEL"],
        extra_files=tuple(map(file_name, record["_EXTRA_FILES"])),
        creation_time_ms=record["_CREATION_TIME"],
        delete_row_count=record["_DELETE_ROW_COUNT"],
        embedded_index=record["_EMBEDDED_FILE_INDEX"],
        file_source=record["_FILE_SOURCE"],
        value_stats_cols=_tupled(record["_VALUE_STATS_COLS"]),
        # Older writers omit the following fields.
        external_path=record.get("_EXTERNAL_PATH"),
        first_row_id=record.get("_FIRST_ROW_ID"),
        write_cols=_tupled(record.get("_WRITE_COLS")),
    )


def _stats_record(stats: SimpleStats) -> dict[str, Any]:
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }


def _stats(record: Mapping[str, Any]) -> SimpleStats:
    counts = record["_NULL_COUNTS"]
    return SimpleStats(record["_MIN_VALUES"], record["_MAX_VALUES"], tuple(counts or ()))


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _tupled(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _meta_record(meta: ManifestFileMeta) -> dict[str, Any]:
    return {
        "_FILE_NAME": meta.file_name,
        "_FILE_SIZE": meta.file_size,
        "_NUM_ADDED_FILES": meta.num_added_files,
        "_NUM_DELETED_FILES": meta.num_deleted_files,
        "_PARTITION_STATS": _stats_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        "_MIN_BUCKET": meta.min_bucket,
        "_MAX_BUCKET": meta.max_bucket,
        "_MIN_LEVEL": meta.min_level,
        "_MAX_LEVEL": meta.max_level,
        "_MIN_ROW_ID": meta.min_row_id,
        "_MAX_ROW_ID": meta.max_row_id,
    }


def _meta(record: Mapping[str, Any]) -> ManifestFileMeta:
    return ManifestFileMeta(
        file_name=file_name(record["_FILE_NAME"]),
        file_size=record["_FILE_SIZE"],
        num_added_files=record["_NUM_ADDED_FILES"],
        num_deleted_files=record["_NUM_DELETED_FILES"],
        partition_stats=_stats(record["_PARTITION_STATS"]),
        schema_id=record["_SCHEMA_ID"],
        # Older writers omit the following fields.
        min_bucket=record.get("_MIN_BUCKET"),
        max_bucket=record.get("_MAX_BUCKET"),
        min_level=record.get("_MIN_LEVEL"),
        max_level=record.get("_MAX_LEVEL"),
        min_row_id=record.get("_MIN_ROW_ID"),
        max_row_id=record.get("_MAX_ROW_ID"),
    )

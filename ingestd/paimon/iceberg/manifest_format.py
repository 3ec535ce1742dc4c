"""Encode and decode Iceberg's manifests and manifest lists.

The Avro schemas are those of Java Paimon, which can continue the metadata. The header entries are
those that Iceberg's own writers add; some readers need them.

Specification: https://iceberg.apache.org/spec/#manifests
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property, lru_cache

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.iceberg_types import Json, avro_type, bound, bound_order
from ingestd.paimon.spec import avro_blocks
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.iceberg_rules import ROW_IDS_SINCE

DATA, DELETES = 0, 1
"""Content types of manifests and files: data, or positions of deleted rows."""
FIRST_PARTITION_ID = 1000
SPEC_ID = 0
"""Id of the only partition spec, because the partitioning of a Paimon table never changes."""
_LEGACY = {
    f"{what}_files_count": f"{what}_data_files_count" for what in ("added", "existing", "deleted")
}
_REMEMBERED_SCHEMAS = 32
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")


class EntryStatus(IntEnum):
    """The status of a data file in an Iceberg manifest: existing, added or deleted."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class IcebergEntry:
    """An entry of an Iceberg manifest; `data_file` is the file's record as decoded from Avro.

    `snapshot_id` is the id of the snapshot that added the file, or deleted it. The sequence numbers
    are those of the specification: of the data, and of the snapshot that added the file.
    """

    status: EntryStatus
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    data_file: Mapping[str, Json]

    @property
    def is_live(self) -> bool:
        """Whether the file belongs to the snapshot, which is false for a deleted file."""
        return self.status != EntryStatus.DELETED

    @property
    def name(self) -> str:
        """The name of the file without its directory, which is unique in a table."""
        return str(self.data_file["file_path"]).rpartition("/")[2]


@dataclass(frozen=True)
class IcebergManifest:
    """An entry of a manifest list, with the fields of the specification.

    `content` is DATA or DELETES, and `partitions` has the bounds of each partition column.
    `manifest_length` is in bytes. The live rows of a data manifest that have no ids of their own
    have ids from `first_row_id` on; None in version 2, for deletes, and if Java Paimon 1.4 wrote
    the list.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: Sequence[Mapping[str, Json]]
    first_row_id: int | None = None

    @cached_property
    def encoded(self) -> bytes:
        """The bytes of this entry as an Avro record in a manifest list of version 2.

        They are the same for the old and new names of the fields.
        """
        schema = _parsed_schema(_list_schema(legacy=False, row_ids=False))
        return avro_blocks.encode_records(schema, [_members(self)])


def encode_manifest(
    entries: Sequence[IcebergEntry],
    partition_fields: Sequence[DataField],
    codec: str,
    header: Mapping[str, str],
) -> bytes:
    """Return the bytes of a manifest, an Avro file, with these entries.

    `partition_fields` are the partition columns of the table, `codec` is the Avro codec of the
    blocks; `header` has additional entries of the Avro header, among them the version of the format
    if it is not 2.
    """
    schema = _manifest_schema(tuple(partition_fields), row_ids=_has_row_ids(header))
    records = [_members(entry) for entry in entries]
    payload = avro_blocks.encode_records(_parsed_schema(schema), records)
    blocks = [(len(records), payload)] if records else []
    return avro_blocks.encode_blocks(schema, blocks, codec, header=header)


def decode_manifest(
    data: bytes, source: str, first_row_id: int | None = None
) -> list[IcebergEntry]:
    """Return the entries of a manifest that Java or this package wrote.

    Live files have the row ids that they inherit from the manifest, whose rows without ids begin at
    `first_row_id` (None: there are no row ids). Raises FormatError, naming `source`, if the
    manifest is damaged.
    """
    try:
        entries = [
            IcebergEntry(**{**record, "status": EntryStatus(record["status"])})
            for record in _decode(data, source)
        ]
        return entries if first_row_id is None else list(_with_row_ids(entries, first_row_id))
    except (TypeError, ValueError, KeyError) as error:
        raise FormatError(f"{source} is not an Iceberg manifest: {error!r}") from error


def _with_row_ids(entries: Sequence[IcebergEntry], first_row_id: int) -> Iterator[IcebergEntry]:
    for entry in entries:
        file = entry.data_file
        if entry.is_live and file.get("first_row_id") is None:
            yield replace(entry, data_file={**file, "first_row_id": first_row_id})
            first_row_id += file["record_count"]
        else:
            yield entry


def describe_manifest(
    path: str,
    length: int,
    entries: Sequence[IcebergEntry],
    partition_fields: Sequence[DataField],
    snapshot_id: int,
    content: int = DATA,
) -> IcebergManifest:
    """Return the entry of the manifest list for a manifest that a snapshot adds.

    `path` and `length` are the path and the size in bytes of the manifest, `entries` its entries,
    and `content` is DATA or DELETES. `partition_fields` are the partition columns of the table.
    """
    counts = dict.fromkeys(EntryStatus, 0)
    rows = dict.fromkeys(EntryStatus, 0)
    for entry in entries:
        counts[entry.status] += 1
        rows[entry.status] += entry.data_file["record_count"]
    return IcebergManifest(
        manifest_path=path,
        manifest_length=length,
        partition_spec_id=SPEC_ID,
        content=content,
        sequence_number=snapshot_id,
        min_sequence_number=min((entry.sequence_number for entry in entries), default=-1),
        added_snapshot_id=snapshot_id,
        added_files_count=counts[EntryStatus.ADDED],
        existing_files_count=counts[EntryStatus.EXISTING],
        deleted_files_count=counts[EntryStatus.DELETED],
        added_rows_count=rows[EntryStatus.ADDED],
        existing_rows_count=rows[EntryStatus.EXISTING],
        deleted_rows_count=rows[EntryStatus.DELETED],
        partitions=[_summary(field, entries) for field in partition_fields],
    )


def _summary(field: DataField, entries: Sequence[IcebergEntry]) -> dict[str, Json]:
    name = avro_name(field.name)
    values = [entry.data_file["partition"][name] for entry in entries]
    contains_nan = any(map(_is_nan, values))
    bounds = {
        bound(field.type, value) for value in values if value is not None and not _is_nan(value)
    }
    # For Iceberg's readers -0.0 is less than 0.0: if one of them is the bound of both, they skip
    # the manifest when they look for the other.
    order = {data: (known := bound_order(field.type, data), _sign(known)) for data in bounds}
    return {
        "contains_null": None in values,
        "contains_nan": contains_nan,
        "lower_bound": min(bounds, key=order.__getitem__, default=None),
        "upper_bound": max(bounds, key=order.__getitem__, default=None),
    }


def may_have_partition(
    manifest: IcebergManifest, partition_fields: Sequence[DataField], values: Sequence[Json]
) -> bool:
    """Return whether a manifest may list files of a partition, by its bounds.

    `values` are the partition values as plain Avro values, in the order of the fields.
    """
    cells = zip(partition_fields, values, manifest.partitions, strict=True)
    return all(_may_be_in(field, value, summary) for field, value, summary in cells)


def _may_be_in(field: DataField, value: Json, summary: Mapping[str, Json]) -> bool:
    lower, upper = summary["lower_bound"], summary["upper_bound"]
    if value is None:
        return bool(summary["contains_null"])
    if lower is None or upper is None:
        return bool(summary["contains_nan"])
    low, high = (bound_order(field.type, data) for data in (lower, upper))
    sought = bound_order(field.type, bound(field.type, value))
    return not (sought < low or sought > high)  # NaN, which Java has among bounds, excludes nothing


def _sign(value: Json) -> float:
    return math.copysign(1, value) if isinstance(value, float) else 0


def _is_nan(value: Json) -> bool:
    return isinstance(value, float) and math.isnan(value)


def encode_list(
    manifests: Sequence[IcebergManifest], codec: str, header: Mapping[str, str], *, legacy: bool
) -> bytes:
    """Return the bytes of a manifest list.

    `codec` is the Avro codec. `legacy` selects the field names of Iceberg 1.4; `header` has
    additional entries of the Avro header, among them the version of the format if it is not 2.
    """
    row_ids = _has_row_ids(header)
    schema = _list_schema(legacy=legacy, row_ids=row_ids)
    if row_ids:
        positional = _parsed_schema(_list_schema(legacy=False, row_ids=True))
        payload = avro_blocks.encode_records(positional, list(map(_members, manifests)))
    else:
        payload = b"".join(manifest.encoded for manifest in manifests)
    blocks = [(len(manifests), payload)] if manifests else []
    return avro_blocks.encode_blocks(schema, blocks, codec, header=header)


def _has_row_ids(header: Mapping[str, str]) -> bool:
    return int(header.get("format-version", "2")) >= ROW_IDS_SINCE


def decode_list(data: bytes, source: str) -> list[IcebergManifest]:
    """Return the entries of a manifest list that Java or this package wrote.

    Raises FormatError, naming `source`, if it is damaged.
    """
    current = {old: new for new, old in _LEGACY.items()}
    try:
        return [
            IcebergManifest(**{current.get(name, name): value for name, value in record.items()})
            for record in _decode(data, source)
        ]
    except TypeError as error:
        raise FormatError(f"{source} is not an Iceberg manifest list: {error!r}") from error


def avro_name(name: str) -> str:
    """Return the Avro name of a partition column, with characters that Avro forbids escaped."""
    safe = _UNSAFE.sub(lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{safe}" if safe[:1].isdigit() else safe


def _members(record: IcebergEntry | IcebergManifest) -> dict[str, Json]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _decode(data: bytes, source: str) -> list[dict[str, Json]]:
    try:
        file = avro_blocks.decode_blocks(data)
        schema = _parsed_schema(file.schema)
        return [
            record
            for count, payload in file.blocks
            for record in avro_blocks.decode_records(schema, count, payload)
        ]
    except avro_blocks.BROKEN as error:
        raise FormatError(f"{source} is not a readable Avro file: {error!r}") from error


@lru_cache(maxsize=_REMEMBERED_SCHEMAS)
def _parsed_schema(text: str) -> Json:
    return avro_blocks.parse_block_schema(json.loads(text))


def _field(name: str, avro: Json, field_id: int) -> Json:
    return {"name": name, "type": avro, "field-id": field_id}


def _optional(name: str, avro: Json, field_id: int) -> Json:
    return {"name": name, "type": ["null", avro], "default": None, "field-id": field_id}


def _record(name: str, *members: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(members)}


def _map(key_id: int, value_id: int, value: str) -> Json:
    """Return the Avro type of a map with integer keys: an array of key-value records."""
    pair = _record(
        f"k{key_id}_v{value_id}", _field("key", "int", key_id), _field("value", value, value_id)
    )
    return {"type": "array", "items": pair, "logicalType": "map"}


@lru_cache(maxsize=_REMEMBERED_SCHEMAS)
def _manifest_schema(partition_fields: Sequence[DataField], *, row_ids: bool) -> str:
    partition = _record(
        "r102",
        *(
            (_optional if field.type.nullable else _field)(
                avro_name(field.name), avro_type(field.type), FIRST_PARTITION_ID + at
            )
            for at, field in enumerate(partition_fields)
        ),
    )
    data_file = _record(
        "r2",
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", partition, 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _optional("null_value_counts", _map(121, 122, "long"), 110),
        _optional("lower_bounds", _map(126, 127, "bytes"), 125),
        _optional("upper_bounds", _map(129, 130, "bytes"), 128),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
        *([_optional("first_row_id", "long", 142)] if row_ids else []),
    )
    entry = _record(
        "manifest_entry",
        _field("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _field("data_file", data_file, 2),
    )
    return json.dumps(entry)


@lru_cache(maxsize=4)
def _list_schema(*, legacy: bool, row_ids: bool) -> str:
    names = {field.name: field.name for field in fields(IcebergManifest)}
    names |= _LEGACY if legacy else {}
    summary = _record(
        "r508",
        _field("contains_null", "boolean", 509),
        _optional("contains_nan", "boolean", 518),
        _optional("lower_bound", "bytes", 510),
        _optional("upper_bound", "bytes", 511),
    )
    entry = _record(
        "manifest_file",
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _optional("added_snapshot_id", "long", 503),
        _field(names["added_files_count"], "int", 504),
        _field(names["existing_files_count"], "int", 505),
        _field(names["deleted_files_count"], "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
        _optional("partitions", {"type": "array", "items": summary, "element-id": 508}, 507),
        *([_optional("first_row_id", "long", 520)] if row_ids else []),
    )
    return json.dumps(entry)

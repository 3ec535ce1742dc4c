"""Manifests and manifest lists: what is written is read, with its summary."""

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.iceberg.manifest_format import (
    EntryStatus,
    IcebergEntry,
    avro_name,
    decode_list,
    decode_manifest,
    describe_manifest,
    encode_list,
    encode_manifest,
    may_have_partition,
)
from ingestd.paimon.spec import avro_blocks
from ingestd.paimon.spec.data_types import DataField, parse_type

FIELDS = (DataField(0, "dt", parse_type("STRING")), DataField(1, "a-b", parse_type("INT NOT NULL")))


def entry(
    name: str, dt: str | None, number: int, status: EntryStatus = EntryStatus.ADDED
) -> IcebergEntry:
    record: Mapping[str, Any] = {
        "content": 0, "file_path": f"/t/{name}", "file_format": "parquet",
        "partition": {"dt": dt, "a_x2Db": number}, "record_count": 3, "file_size_in_bytes": 9,
        "null_value_counts": [{"key": 0, "value": 1}], "lower_bounds": [{"key": 0, "value": b"x"}],
        "upper_bounds": [], "referenced_data_file": None, "content_offset": None,
        "content_size_in_bytes": None,
    }  # fmt: skip
    return IcebergEntry(status, 4, 4, 4, record)


ENTRIES = [
    entry("f1", "b", 7),
    entry("f2", None, -1, EntryStatus.EXISTING),
    entry("f3", "a", 5, EntryStatus.DELETED),
]


@pytest.mark.parametrize("codec", ["snappy", "null", "zstandard", "deflate", "bzip2"])
def test_a_manifest_is_read_as_it_was_written(codec: str) -> None:
    data = encode_manifest(ENTRIES, FIELDS, codec, {"format-version": "2"})
    assert decode_manifest(data, "m") == ENTRIES
    assert [entry.name for entry in ENTRIES] == ["f1", "f2", "f3"]
    assert [entry.is_live for entry in ENTRIES] == [True, True, False]


def test_the_header_has_what_other_readers_need() -> None:
    data = encode_manifest(ENTRIES, FIELDS, "null", {"partition-spec-id": "0"})
    assert b"partition-spec-id" in data
    ids = json.loads(avro_blocks.decode_blocks(data).schema)["fields"][4]["type"]["fields"][3]
    assert [(field["name"], field["field-id"]) for field in ids["type"]["fields"]] == [
        ("dt", 1000), ("a_x2Db", 1001)
    ]  # fmt: skip


@pytest.mark.parametrize("legacy", [False, True])
def test_a_list_sums_up_its_manifests(legacy: bool) -> None:
    described = describe_manifest("/t/m", 77, ENTRIES, FIELDS, 6)
    data = encode_list([described], "null", {}, legacy=legacy)
    assert (b"added_data_files_count" in data) is legacy
    assert decode_list(data, "l") == [described]
    counts = (
        described.added_files_count, described.existing_files_count, described.deleted_files_count,
        described.added_rows_count, described.min_sequence_number, described.sequence_number,
    )  # fmt: skip
    assert counts == (1, 1, 1, 3, 4, 6)
    assert described.partitions == [
        {"contains_null": True, "contains_nan": False, "lower_bound": b"a", "upper_bound": b"b"},
        {"contains_null": False, "contains_nan": False,
         "lower_bound": b"\xff\xff\xff\xff", "upper_bound": b"\x07\x00\x00\x00"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("partition", "may"),
    [(("a", 5), True), (("aa", 0), True), ((None, 7), True), (("c", 5), False), (("a", 8), False)],
)
def test_partitions_beyond_the_bounds_are_excluded(partition: tuple[Any, ...], may: bool) -> None:
    described = describe_manifest("/t/m", 77, ENTRIES, FIELDS, 6)
    assert may_have_partition(described, FIELDS, partition) is may


def test_a_manifest_without_nulls_excludes_the_null_partition() -> None:
    described = describe_manifest("/t/m", 77, ENTRIES[:1], FIELDS, 6)
    assert not may_have_partition(described, FIELDS, (None, 7))
    only_null = describe_manifest("/t/m", 77, ENTRIES[1:2], FIELDS, 6)
    assert not may_have_partition(only_null, FIELDS, ("a", -1))


@pytest.mark.parametrize("order", [(0.0, -0.0), (-0.0, 0.0)])
@pytest.mark.parametrize("root", ["FLOAT", "DOUBLE"])
def test_bounds_of_both_zeros_include_both(root: str, order: tuple[float, ...]) -> None:
    fields = [DataField(0, "p", parse_type(root))]
    values = [*order, float("nan"), None]
    entries = [replace(ENTRIES[0], data_file={"record_count": 1, "partition": {"p": value}})
               for value in values]  # fmt: skip
    (summary,) = describe_manifest("/t/m", 77, entries, fields, 6).partitions
    form = "<f" if root == "FLOAT" else "<d"
    assert summary == {"contains_null": True, "contains_nan": True,
                       "lower_bound": struct.pack(form, -0.0),
                       "upper_bound": struct.pack(form, 0.0)}  # fmt: skip
    one = describe_manifest("/t/m", 77, entries[:1], fields, 6)
    assert all(may_have_partition(one, fields, (zero,)) for zero in (0.0, -0.0))


@pytest.mark.parametrize("name", ["dt", "_x", "a1"])
def test_plain_names_stay(name: str) -> None:
    assert avro_name(name) == name


def test_other_names_are_spelt_as_iceberg_does() -> None:
    assert (avro_name("1a"), avro_name("a b"), avro_name("-")) == ("_1a", "a_x20b", "_x2D")


def test_damaged_files_are_named() -> None:
    data = encode_manifest(ENTRIES, FIELDS, "null", {})
    with pytest.raises(FormatError, match="here"):
        decode_manifest(data[:-20], "here")
    with pytest.raises(FormatError, match="here"):
        decode_list(data, "here")
    with pytest.raises(FormatError, match="here"):
        decode_manifest(encode_list([], "null", {}, legacy=False)[:3], "here")

import base64
from dataclasses import replace

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.avro_container import decode_records, encode_records
from ingestd.paimon.spec.avro_schemas import MANIFEST_SCHEMA
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_file import EMPTY_STATS, DataFileMeta
from ingestd.paimon.spec.index_manifest import decode_index_manifest
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
    fold_entries,
)
from tests.support.format_vectors import vectors
from tests.support.java_tables import table_files

WRITTEN = {case["kind"]: case for case in vectors("java_written_files")}


def java_bytes(kind: str) -> bytes:
    return base64.b64decode(WRITTEN[kind]["base64"])


def plain(value: object) -> object:
    """A decoded record in the words of the vectors."""
    if isinstance(value, bytes):
        return "hex:" + value.hex()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "_CREATION_TIME"}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", ["manifest", "manifest_list"])
def test_java_manifests_hold_what_java_says_and_are_written_back_the_same(kind: str) -> None:
    data = java_bytes(kind)
    records = decode_records(data, 2, kind)
    assert plain(records) == plain(WRITTEN[kind]["records"])
    if kind == "manifest":
        again = encode_manifest(decode_manifest(data, kind))
    else:
        again = encode_manifest_list(decode_manifest_list(data, kind))
    assert decode_records(again, 2, kind) == records


def test_creation_time_is_milliseconds_of_the_epoch() -> None:
    entries = decode_manifest(java_bytes("manifest"), "m")
    assert entries[0].file.creation_time_ms == 1795250752056


def test_manifests_of_java_tables_survive_writing() -> None:
    files = table_files("*/manifest/manifest-*")
    assert files
    for path in files:
        data, name = path.read_bytes(), path.name
        if name.startswith("manifest-list"):
            metas = decode_manifest_list(data, name)
            again = encode_manifest_list(metas)
            assert decode_manifest_list(again, name) == metas
        else:
            again = encode_manifest(decode_manifest(data, name))
        assert decode_records(again, 2, name) == decode_records(data, 2, name)


def entry(kind: FileKind, name: str = "f", level: int = 0, bucket: int = 0) -> ManifestEntry:
    file = DataFileMeta(name, 10, 1, EMPTY_ROW, EMPTY_ROW, EMPTY_STATS, EMPTY_STATS, 0, 0, 0, level)
    return ManifestEntry(kind, EMPTY_ROW, bucket, 1, file)


ADD, DELETE = FileKind.ADD, FileKind.DELETE


def test_a_delete_cancels_its_add_and_order_stays() -> None:
    entries = [entry(ADD, "a"), entry(ADD, "b"), entry(ADD, "c"), entry(DELETE, "b")]
    assert [e.file.file_name for e in fold_entries(entries)] == ["a", "c"]


def test_a_delete_without_add_stays_pending() -> None:
    pending = entry(DELETE, "old")
    assert fold_entries([pending, entry(ADD, "new")]) == [pending, entry(ADD, "new")]


def test_an_upgrade_to_another_level_is_another_file() -> None:
    entries = [entry(ADD, level=0), entry(DELETE, level=0), entry(ADD, level=5)]
    assert fold_entries(entries) == [entry(ADD, level=5)]


@pytest.mark.parametrize(
    "other",
    [
        entry(DELETE, bucket=1),
        entry(DELETE, level=1),
        replace(entry(DELETE), partition=b"other"),
        replace(entry(DELETE), file=replace(entry(DELETE).file, extra_files=("f.index",))),
        replace(entry(DELETE), file=replace(entry(DELETE).file, embedded_index=b"x")),
        replace(entry(DELETE), file=replace(entry(DELETE).file, external_path="/x")),
    ],
)
def test_a_delete_of_another_identity_cancels_nothing(other: ManifestEntry) -> None:
    assert fold_entries([entry(ADD), other]) == [entry(ADD), other]


def test_adding_a_file_that_is_there_is_a_format_error() -> None:
    with pytest.raises(FormatError, match="data file f of bucket 0 is added twice"):
        fold_entries([entry(ADD), entry(ADD)])


def test_a_file_may_be_added_again_after_it_was_deleted() -> None:
    assert fold_entries([entry(ADD), entry(DELETE), entry(ADD)]) == [entry(ADD)]


def test_an_unknown_kind_is_a_format_error_that_names_the_file() -> None:
    (record,) = decode_records(encode_manifest([entry(ADD)]), 2, "m")
    data = encode_records(MANIFEST_SCHEMA, 2, [{**record, "_KIND": 7}])
    with pytest.raises(FormatError, match="manifest-7"):
        decode_manifest(data, "manifest-7")


def test_one_kind_of_manifest_is_not_taken_for_another() -> None:
    with pytest.raises(FormatError, match="manifest-x"):
        decode_manifest(java_bytes("manifest_list"), "manifest-x")
    with pytest.raises(FormatError, match="list-x"):
        decode_manifest_list(java_bytes("manifest"), "list-x")
    with pytest.raises(FormatError, match="only 1 is understood"):
        decode_index_manifest(java_bytes("manifest"), "index-x")


def test_manifests_of_older_writers_lack_the_newest_fields() -> None:
    records = decode_records(encode_manifest([entry(ADD)]), 2, "m")
    newest = ("_EXTERNAL_PATH", "_FIRST_ROW_ID", "_WRITE_COLS")
    file_schema = MANIFEST_SCHEMA["fields"][5]
    old_fields = [f for f in file_schema["type"]["fields"] if f["name"] not in newest]
    old_file = {**file_schema, "type": {**file_schema["type"], "fields": old_fields}}
    schema = {**MANIFEST_SCHEMA, "fields": [*MANIFEST_SCHEMA["fields"][:5], old_file]}
    assert decode_manifest(encode_records(schema, 2, records), "old") == [entry(ADD)]


def test_a_pending_delete_is_not_followed_by_an_add_of_the_same_file() -> None:
    with pytest.raises(FormatError, match="data file f"):
        fold_entries([entry(DELETE), entry(ADD)])

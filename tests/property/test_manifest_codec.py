"""Manifests, manifest lists and index manifests come back from bytes as they went in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import FormatError
from ingestd.paimon.spec.data_file import DataFileMeta, SimpleStats
from ingestd.paimon.spec.index_manifest import (
    DeletionVectorRange,
    GlobalIndex,
    IndexManifestEntry,
    decode_hash_index,
    decode_index_manifest,
    encode_hash_index,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
    fold_entries,
)

INT = st.integers(-(1 << 31), (1 << 31) - 1)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=12)
FILE_NAMES = NAMES.filter(lambda n: n not in ("", ".", "..") and not {"/", "\0"} & set(n))
BYTES = st.binary(max_size=24)


def tuples(items: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(items, max_size=3).map(tuple)


STATS = st.builds(SimpleStats, BYTES, BYTES, tuples(st.none() | LONG))
FILES = st.builds(
    DataFileMeta,
    file_name=FILE_NAMES, file_size=LONG, row_count=LONG, min_key=BYTES, max_key=BYTES,
    key_stats=STATS, value_stats=STATS, min_sequence_number=LONG, max_sequence_number=LONG,
    schema_id=LONG, level=INT, extra_files=tuples(FILE_NAMES), creation_time_ms=st.none() | LONG,
    delete_row_count=st.none() | LONG, embedded_index=st.none() | BYTES,
    file_source=st.none() | INT, value_stats_cols=st.none() | tuples(NAMES),
    external_path=st.none() | NAMES, first_row_id=st.none() | LONG,
    write_cols=st.none() | tuples(NAMES),
)  # fmt: skip
ENTRIES = st.builds(ManifestEntry, st.sampled_from(FileKind), BYTES, INT, INT, FILES)
METAS = st.builds(
    ManifestFileMeta,
    file_name=FILE_NAMES, file_size=LONG, num_added_files=LONG, num_deleted_files=LONG,
    partition_stats=STATS, schema_id=LONG, min_bucket=st.none() | INT, max_bucket=st.none() | INT,
    min_level=st.none() | INT, max_level=st.none() | INT, min_row_id=st.none() | LONG,
    max_row_id=st.none() | LONG,
)  # fmt: skip
RANGES = st.builds(DeletionVectorRange, NAMES, INT, INT, st.none() | LONG)
GLOBALS = st.builds(GlobalIndex, LONG, LONG, INT, st.none() | tuples(INT), st.none() | BYTES)
INDEX_ENTRIES = st.builds(
    IndexManifestEntry,
    kind=st.sampled_from(FileKind), partition=BYTES, bucket=INT, index_type=NAMES,
    file_name=FILE_NAMES, file_size=LONG, row_count=LONG, dv_ranges=st.none() | tuples(RANGES),
    external_path=st.none() | NAMES, global_index=st.none() | GLOBALS,
)  # fmt: skip


@given(st.lists(ENTRIES, max_size=4))
def test_manifests_come_back(entries: list[ManifestEntry]) -> None:
    assert decode_manifest(encode_manifest(entries), "m") == entries


@given(st.lists(METAS, max_size=4))
def test_manifest_lists_come_back(metas: list[ManifestFileMeta]) -> None:
    assert decode_manifest_list(encode_manifest_list(metas), "l") == metas


@given(st.lists(INDEX_ENTRIES, max_size=4))
def test_index_manifests_come_back(entries: list[IndexManifestEntry]) -> None:
    assert decode_index_manifest(pack_index_records(encode_index_records(entries)), "i") == entries


@given(st.lists(INT))
def test_hash_indexes_come_back(hashes: list[int]) -> None:
    data = encode_hash_index(np.array(hashes, np.int32))
    assert len(data) == 4 * len(hashes)
    assert decode_hash_index(data, "h").tolist() == hashes


@given(st.lists(ENTRIES, min_size=1, max_size=2), st.data())
def test_a_manifest_with_a_wrong_byte_is_never_another_error(
    entries: list[ManifestEntry], data: st.DataObject
) -> None:
    broken = bytearray(encode_manifest(entries))
    place = data.draw(st.integers(0, len(broken) - 1))
    broken[place] = data.draw(st.integers(0, 255))
    try:
        decode_manifest(bytes(broken), "broken-manifest")
    except FormatError as error:
        assert "broken-manifest" in error.message


@st.composite
def histories(draw: st.DrawFn) -> list[ManifestEntry]:
    """Entries in an order that a table can have: a file comes once and goes once."""
    file = draw(FILES)
    partitions, names = st.sampled_from([b"a", b"b"]), st.sampled_from(["f", "g"])
    steps = st.tuples(partitions, st.integers(0, 1), names, st.integers(0, 1), st.booleans())
    there: set[tuple[object, ...]] = set()
    gone: set[tuple[object, ...]] = set()
    entries = []
    for partition, bucket, name, level, add in draw(st.lists(steps, max_size=20)):
        identity = (partition, bucket, name, level)
        if add == (identity in there) or identity in gone:
            continue
        (there if add else gone).add(identity)
        meta = DataFileMeta(name, 1, 1, b"", b"", file.key_stats, file.value_stats, 0, 0, 0, level)
        kind = FileKind.ADD if add else FileKind.DELETE
        entries.append(ManifestEntry(kind, partition, bucket, 1, meta))
    return entries


@given(histories(), st.integers(0, 20))
def test_folding_leaves_what_a_set_of_files_would_hold(
    entries: list[ManifestEntry], cut: int
) -> None:
    model: dict[object, ManifestEntry] = {}
    for entry in entries:
        if entry.kind is FileKind.ADD:
            model[entry.identifier] = entry
        else:
            del model[entry.identifier]
    assert fold_entries(entries) == list(model.values())
    merged = [*fold_entries(entries[:cut]), *fold_entries(entries[cut:])]
    assert set(map(id, fold_entries(merged))) == set(map(id, model.values()))

import base64

import numpy as np
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.avro_container import decode_records
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.bucket import hash_columns
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.index_manifest import (
    DeletionVectorRange,
    IndexManifestEntry,
    decode_hash_index,
    decode_index_manifest,
    encode_hash_index,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import FileKind
from tests.support.format_vectors import vectors
from tests.support.java_tables import table_files

WRITTEN = {case["kind"]: base64.b64decode(case["base64"]) for case in vectors("java_written_files")}


def test_hash_index_entry_of_java_is_understood() -> None:
    (entry,) = decode_index_manifest(WRITTEN["index_manifest_hash"], "i")
    assert entry == IndexManifestEntry(
        FileKind.ADD, EMPTY_ROW, 0, "HASH", "index-8a0b732c-2549-4883-b32f-0e2555f2da13-0", 16, 4
    )


def test_deletion_vector_entry_of_java_is_understood() -> None:
    (entry,) = decode_index_manifest(WRITTEN["index_manifest_dv"], "i")
    name = "data-4774f540-b058-4cee-bcc2-e0d455e52611-0.parquet"
    assert entry.dv_ranges == (DeletionVectorRange(name, 1, 24, 2),)


def test_index_manifests_of_java_are_written_back_the_same() -> None:
    files = [path.read_bytes() for path in table_files("*/manifest/index-manifest-*")]
    assert files
    for data in [*files, WRITTEN["index_manifest_hash"], WRITTEN["index_manifest_dv"]]:
        again = pack_index_records(encode_index_records(decode_index_manifest(data, "i")))
        assert decode_records(again, 1, "i") == decode_records(data, 1, "i")


def test_hash_index_file_is_javas() -> None:
    case = vectors("hash_index_file")
    data = bytes.fromhex(case["bytes"])
    assert decode_hash_index(data, "i").tolist() == case["ints_in_file_order"]
    assert encode_hash_index(np.array(case["ints_in_file_order"], np.int32)) == data
    keys = column_of(case["keys_in_bucket"], DataType("INT"))
    hashes = hash_columns([keys], [DataType("INT")])
    assert sorted(hashes.tolist()) == sorted(case["ints_in_file_order"])


def test_hash_index_that_ends_within_a_number_is_a_format_error() -> None:
    with pytest.raises(FormatError, match="index-1 has 5 bytes"):
        decode_hash_index(bytes(5), "index-1")


def test_broken_index_manifest_names_its_file() -> None:
    with pytest.raises(FormatError, match="index-manifest-1"):
        decode_index_manifest(WRITTEN["index_manifest_hash"][:-4], "index-manifest-1")

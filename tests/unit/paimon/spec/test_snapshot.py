import json
import pickle

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.snapshot import (
    BATCH_COMMIT_IDENTIFIER,
    CommitKind,
    Snapshot,
    encode_snapshot,
    parse_snapshot,
)
from tests.support.format_vectors import vectors
from tests.support.java_tables import table_files

EXAMPLES = vectors("snapshot_json_examples")


@pytest.mark.parametrize("document", EXAMPLES)
def test_snapshots_of_java_come_back_in_the_same_order(document: dict[str, object]) -> None:
    again = json.loads(encode_snapshot(parse_snapshot(json.dumps(document).encode(), "s")))
    assert again == document
    assert list(again) == list(document)


def test_snapshot_files_of_java_are_written_back_the_same() -> None:
    files = table_files("*/snapshot/snapshot-*")
    assert files
    for path in files:
        snapshot = parse_snapshot(path.read_bytes(), str(path))
        assert json.loads(encode_snapshot(snapshot)) == json.loads(path.read_bytes())


def test_fields_have_their_meaning() -> None:
    snapshot = parse_snapshot(json.dumps(EXAMPLES[1]).encode(), "s")
    assert snapshot.commit_kind is CommitKind.COMPACT
    assert snapshot.delta_record_count == -3
    assert (snapshot.changelog_manifest_list, snapshot.watermark) == (None, None)
    assert snapshot.properties == {}
    assert BATCH_COMMIT_IDENTIFIER == 2**63 - 1


def full() -> Snapshot:
    return Snapshot(
        id=5, schema_id=1, base_manifest_list="b", base_manifest_list_size=1,
        delta_manifest_list="d", delta_manifest_list_size=2, changelog_manifest_list="c",
        changelog_manifest_list_size=3, index_manifest="i", commit_user="u", commit_identifier=9,
        commit_kind=CommitKind.OVERWRITE, time_millis=4, total_record_count=5,
        delta_record_count=6, changelog_record_count=7, watermark=-(2**63), statistics="st",
        properties={"a": "ü", "b": ""}, next_row_id=0,
    )  # fmt: skip


def test_every_field_is_written_and_read() -> None:
    assert parse_snapshot(encode_snapshot(full()), "s") == full()
    assert len(json.loads(encode_snapshot(full()))) == 21
    assert pickle.loads(pickle.dumps(full())) == full()


def test_unknown_keys_and_later_versions_are_ignored() -> None:
    document = {**EXAMPLES[0], "version": 4, "uuid": "x", "operation": {"a": 1}, "logOffsets": {}}
    assert parse_snapshot(json.dumps(document).encode(), "s").id == EXAMPLES[0]["id"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 0}, "version 0"),
        ({"version": True}, "version True"),
        ({"version": "3"}, "version '3'"),
        ({"commitKind": "append"}, "append"),
        ({"id": "1"}, "id is not of type int"),
        ({"id": True}, "id is not of type int"),
        ({"commitUser": 7}, "commitUser is not of type str"),
        ({"commitUser": None}, "commitUser missing"),
        ({"properties": []}, "items"),
    ],
)
def test_wrong_fields_are_a_format_error_that_names_the_file(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(FormatError, match=f"snapshot-8 .*{message}"):
        parse_snapshot(json.dumps({**EXAMPLES[0], **changes}).encode(), "snapshot-8")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"{}"])
def test_what_is_no_snapshot_is_a_format_error(data: bytes) -> None:
    with pytest.raises(FormatError, match="snapshot file s cannot be read"):
        parse_snapshot(data, "s")

"""Checksums and keys of JSON documents."""

import contextlib
import json

import pytest

from ingestd.paimon.spec.document_checks import check_seal, refuse_misspelt, sealed

DOCUMENT = json.dumps({"id": 7, "name": "ä", "options": {"a": "}"}}, indent=2).encode()


def test_a_sealed_document_says_the_same() -> None:
    assert json.loads(sealed(DOCUMENT)) == json.loads(DOCUMENT)
    assert sealed(DOCUMENT).strip() == DOCUMENT
    check_seal(sealed(DOCUMENT))
    check_seal(DOCUMENT)


def test_no_byte_of_a_sealed_document_can_change_what_it_says() -> None:
    data = sealed(DOCUMENT)
    for at in range(len(data)):
        for bit in range(8):
            damaged = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            with contextlib.suppress(ValueError):
                check_seal(damaged)
                found = json.loads(damaged)
                assert found == json.loads(DOCUMENT)


def test_a_document_that_was_written_anew_has_no_seal_to_break() -> None:
    other = json.dumps(json.loads(sealed(DOCUMENT)) | {"id": 8}).encode()
    check_seal(other)
    assert json.loads(other)["id"] == 8


def test_a_changed_document_with_the_same_checksum_is_refused() -> None:
    with pytest.raises(ValueError, match="checksum"):
        check_seal(sealed(DOCUMENT).replace(b"7", b"8"))


def test_a_key_that_is_a_known_one_but_for_a_character_is_refused() -> None:
    known = ("id", "indexManifest", "statistics")
    refuse_misspelt(["id", "futureKey"], known)
    refuse_misspelt(["id", "indexManifest", "indexManifesT"], known)
    with pytest.raises(ValueError, match="'indexManifezt' and none that is called"):
        refuse_misspelt(["id", "indexManifezt"], known)

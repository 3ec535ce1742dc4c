"""Checksums and keys of JSON documents."""

import contextlib
import json

import pytest

from ingestd.paimon.spec.document_checks import check_seal, refuse_misspelt, sealed

DOCUMENT = json.dumps({"id": 7, "name": "ä", "options": {"a": "}"}}, indent=2).encode()


def test_a_sealed_document_is_the_same_with_one_more_key() -> None:
    found = json.loads(sealed(DOCUMENT))
    assert found.pop("ingestd.crc32")
    assert found == json.loads(DOCUMENT)
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
                assert {key: found.get(key) for key in ("id", "name", "options")} == json.loads(
                    DOCUMENT
                )


def test_only_an_object_of_lines_is_sealed() -> None:
    with pytest.raises(ValueError, match="several lines"):
        sealed(b"{}")


def test_a_key_that_is_a_known_one_but_for_a_character_is_refused() -> None:
    known = ("id", "indexManifest", "statistics")
    refuse_misspelt(["id", "futureKey"], known)
    refuse_misspelt(["id", "indexManifest", "indexManifesT"], known)
    with pytest.raises(ValueError, match="'indexManifezt' and none that is called"):
        refuse_misspelt(["id", "indexManifezt"], known)

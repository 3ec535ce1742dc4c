"""Keys of messages: which fields they have, whatever their names and their order."""

import json

import pytest

from ingestd.cdc.json.messages import NO_KEY, MessageKeys
from ingestd.cdc.record_errors import RecordError


@pytest.mark.parametrize("name", ["id", "näme", 'a"b', "a\\b", "a\nb", "x" * 300])
def test_names_of_every_kind_are_found_repeatedly(name: str) -> None:
    keys = MessageKeys()
    for fields in ({name: 1}, {name: 2}, {"other": 1, name: 3}, {name: 4}, {name: None}):
        text = json.dumps(fields).encode()
        opened = keys.open(text)
        assert (opened.names, opened.payload) == (tuple(fields), text)
        assert opened.envelope is not None


@pytest.mark.parametrize("key", [None, b"null", b"{}", b" null "])
def test_key_without_fields_is_none(key: bytes | None) -> None:
    assert MessageKeys().open(key) == NO_KEY


@pytest.mark.parametrize("key", [b"1", b"[1]", b'"x"', b"\xff", b"{", b'{"a":1}}'])
def test_key_that_is_no_object_is_refused_or_no_key(key: bytes) -> None:
    with pytest.raises(RecordError):
        MessageKeys().open(key)
    lenient = MessageKeys(lenient=True)
    assert lenient.open(b'{"a":1}').names == ("a",)
    assert lenient.open(key) == NO_KEY

"""What each record of a chunk says, in the order in which they are taken."""

import numpy as np

from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.cdc.json.normalized_events import (
    DdlEvent,
    Message,
    NormalizedEvent,
    TableNormalizer,
    TruncateEvent,
    sort_records,
)
from ingestd.cdc.record_errors import record_error

FORMS = {name: TableNormalizer(SourceTable(None, None, name), ("id",)) for name in ("a", "b")}


class Words:
    """A format whose messages are one word."""

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        word = value.decode()
        if word in FORMS:
            return NormalizedEvent(FORMS[word], (b"1", b"2"))
        if word == "empty":
            return TruncateEvent(FORMS["a"].source, 7)
        if word == "alter":
            return [DdlEvent(FORMS["a"].source, None, (("x", None),))]
        if word == "bad":
            raise record_error("decode", "bad_word", "no such word")
        return None

    def normalize_tombstone(self, key: bytes | None, topic: str) -> NormalizedEvent | None:
        return None if key is None else NormalizedEvent(FORMS["b"], (key,))


def chunk() -> RecordChunk:
    words = [b"a", b"b", b"bad", b"empty", b"alter", b"control", None, b"null", b"a"]
    keys = [None, None, None, None, None, None, None, b"k", None]
    offsets = np.arange(100, 100 + len(words))
    return RecordChunk("t", 3, offsets, offsets, [*keys], [*words], None)


def test_records_are_apart_by_what_they_say() -> None:
    found = sort_records(Words(), chunk(), range(9))
    groups = {key[0].source.table: group for key, group in found.groups.items()}
    assert list(groups) == ["a", "b"]
    assert groups["a"].indices == [0, 0, 8, 8]
    assert groups["b"].indices == [1, 1, 7]
    assert groups["b"].values == [b"1", b"2", b"k"]
    assert [key[1:] for key in found.groups] == [(None, ("id",))] * 2
    assert {index: reason.code for index, reason in found.bad.items()} == {2: "bad_word"}
    assert [
        (truncate.offset, truncate.partition, truncate.position) for truncate in found.truncates
    ] == [(103, 3, 7)]
    assert [(one.offset, one.columns) for one in found.altered] == [(104, (("x", None),))]
    # The statement, the control message and the tombstone without a key.
    assert found.control == 3


def test_only_some_of_the_records_may_be_taken() -> None:
    found = sort_records(Words(), chunk(), [1, 5])
    assert [group.indices for group in found.groups.values()] == [[1, 1]]
    assert (found.control, found.bad, found.truncates) == (1, {}, [])

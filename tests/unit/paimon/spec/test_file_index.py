import contextlib
import itertools
import struct
from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.file_index import decode_file_index, encode_file_index
from tests.support.format_vectors import vectors

CASE = vectors("file_index_container")
WANTED: dict[str, Any] = {
    column: {kind: None if raw is None else bytes.fromhex(raw) for kind, raw in kinds.items()}
    for column, kinds in CASE["input"].items()
}
DATA = bytes.fromhex(CASE["bytes"])


CHECK_SIZE = 9


def test_containers_are_those_of_java_but_for_a_checksum_in_the_room_for_more() -> None:
    assert decode_file_index(DATA, "f") == WANTED
    own = encode_file_index(WANTED)
    assert decode_file_index(own, "f") == WANTED
    assert len(own) == len(DATA) + CHECK_SIZE
    (head,) = struct.unpack_from(">i", own, 12)
    assert own[head:] == DATA[head - CHECK_SIZE :]


def test_no_byte_of_our_own_can_change_what_is_read() -> None:
    own = encode_file_index(WANTED)
    for at, bit in itertools.product(range(len(own)), range(8)):
        damaged = own[:at] + bytes([own[at] ^ 1 << bit]) + own[at + 1 :]
        with contextlib.suppress(FormatError):
            assert decode_file_index(damaged, "f") == WANTED


def test_column_names_may_be_any_text() -> None:
    wanted = {"ä\0😀": {"bitmap": b"x"}, "": {}}
    assert decode_file_index(encode_file_index(wanted), "f") == wanted


@pytest.mark.parametrize("length", range(len(DATA)))
def test_every_truncation_is_found(length: int) -> None:
    with pytest.raises(FormatError, match="file index f"):
        decode_file_index(DATA[:length], "f")


def test_another_magic_number_is_refused() -> None:
    with pytest.raises(FormatError, match="it begins with"):
        decode_file_index(b"\x01" + DATA[1:], "f")

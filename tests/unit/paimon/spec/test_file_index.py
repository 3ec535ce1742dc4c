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


def test_containers_are_those_of_java() -> None:
    assert encode_file_index(WANTED) == DATA
    assert decode_file_index(DATA, "f") == WANTED


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

import json

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.retention.success_file import SuccessFile, read_success_file


def test_a_success_file_has_its_times() -> None:
    io = MemoryFileIO()
    assert read_success_file(io, "/w/_SUCCESS") is None
    file = SuccessFile("/w/_SUCCESS", 5, 7)
    file.write(io)
    assert json.loads(io.read_bytes("/w/_SUCCESS")) == {"creationTime": 5, "modificationTime": 7}
    assert read_success_file(io, "/w/_SUCCESS") == file


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"creationTime": "x"}'])
def test_another_document_is_none(data: bytes) -> None:
    io = MemoryFileIO()
    io.overwrite("/w/_SUCCESS", data)
    with pytest.raises(FormatError, match="/w/_SUCCESS is not a success file"):
        read_success_file(io, "/w/_SUCCESS")

from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import FormatError, StorageError
from ingestd.paimon.format.base import decoding


def source() -> Any:
    return pa.PythonFile(BytesIO(b""), mode="r")


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (pa.ArrowInvalid("no footer"), FormatError, "a/b cannot be read as X: no footer"),
        (OSError("too short"), FormatError, "a/b is damaged: too short"),
        (OSError(5, "I/O error"), StorageError, "cannot read a/b: .*I/O error"),
        (ValueError("odd"), FormatError, r"a/b is damaged: ValueError\('odd'\)"),
    ],
)
def test_errors_name_the_file_and_it_is_closed(
    raised: Exception, expected: type[Exception], message: str
) -> None:
    file = source()
    with pytest.raises(expected, match=message) as found, decoding(file, "a/b", "X"):
        raise raised
    assert found.value.__cause__ is raised
    assert file.closed


def test_what_bytes_cannot_be_blamed_for_passes_as_it_is() -> None:
    for given in (KeyError("k"), FileNotFoundError(2, "gone")):
        expected = KeyError if isinstance(given, KeyError) else StorageError
        with pytest.raises(expected), decoding(source(), "a/b", "X"):
            raise given
    with pytest.raises(FormatError, match="damaged"), decoding(source(), "f", "X", (KeyError,)):
        raise KeyError


def test_a_file_that_is_fine_is_closed_too() -> None:
    file = source()
    with decoding(file, "f", "X"):
        pass
    assert file.closed

"""What is wrong with a data file that cannot be decoded, said alike for all formats."""

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from ingestd.errors import FormatError, StorageError

Broken = tuple[type[Exception], ...]
"""What a decoder raises over broken bytes, besides the library's own errors."""


@contextlib.contextmanager
def decoding(
    source: pa.NativeFile, path: str, format_name: str, broken: Broken = (IndexError, ValueError)
) -> Iterator[None]:
    """Closes the file at the end. FormatError and StorageError name it, and tell which it is."""
    try:
        yield
    except pa.ArrowException as error:
        raise FormatError(f"data file {path} cannot be read as {format_name}: {error}") from error
    except OSError as error:
        # What the decoder finds wrong carries no errno; what the disk finds wrong does.
        if error.errno is not None:
            raise StorageError(f"cannot read {path}: {error}") from error
        raise FormatError(f"data file {path} is damaged: {error}") from error
    except broken as error:
        raise FormatError(f"data file {path} is damaged: {error!r}") from error
    finally:
        source.close()

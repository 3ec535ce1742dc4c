"""Unlinked files in Spark's local directory, for blobs that are not kept in memory."""

import os
import tempfile
from typing import BinaryIO, cast

import pyarrow as pa

from ingestd.errors import StorageError, storage_error


def local_directory(configured: str | None = None) -> str:
    """Return the first of Spark's directories for local files, as Spark chooses it.

    The variable SPARK_LOCAL_DIRS, which workers get from Spark's JVM, overrides `configured`, the
    setting `spark.local.dir` (None: the default).
    """
    default = tempfile.gettempdir() if configured is None else configured
    return os.environ.get("SPARK_LOCAL_DIRS", default).split(",")[0]


def temporary_file() -> BinaryIO:
    """Open a file that has no name and is removed when it is closed.

    Raises OSError if it cannot be created.
    """
    return cast("BinaryIO", tempfile.TemporaryFile(dir=local_directory()))


def mapped(file: BinaryIO) -> pa.Buffer:
    """Return the bytes of a temporary file as mapped memory, which outlives the open file.

    Raises OSError if the file cannot be written or mapped.
    """
    file.flush()
    with pa.memory_map(f"/proc/self/fd/{file.fileno()}") as memory:
        return memory.read_buffer()


def exchange_error(path: str, error: OSError) -> StorageError:
    """Return the error for a folder or file that the stages cannot use."""
    return storage_error(
        f"{path}: the stages of a batch cannot exchange files here ({error}); check that "
        "spark.local.dir is not full and was not cleaned, or set it to another folder",
        error,
    )

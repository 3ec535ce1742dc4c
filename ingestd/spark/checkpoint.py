"""Spark's checkpoint as ingestd uses it: a new folder for each query, and the offsets of a batch.

Nothing of it outlives the query. Where a query begins is decided by the tables.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingestd.errors import FormatError, RetryableError
from ingestd.kafka.ranges import BatchOffsets, parse_offset_log

_PREFIX = "ingestd-checkpoint-"


@contextmanager
def checkpoint_folder(parent: str | None = None) -> Iterator[str]:
    """Make an empty folder for the checkpoint of one query; it is removed at the end.

    `parent` None takes the folder for temporary files. Raises RetryableError if it cannot be made.
    """
    try:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    except OSError as error:
        raise RetryableError(
            f"cannot make a folder for Spark's checkpoint in {parent or tempfile.gettempdir()} "
            f"({error}); make room there, or set TMPDIR to another folder"
        ) from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def read_batch_offsets(path: str, batch_id: int) -> BatchOffsets:
    """Offsets that Spark planned for a micro-batch, from the checkpoint's write-ahead log.

    Raises `FormatError` naming the file when it is absent or damaged.
    """
    file = Path(path, "offsets", str(batch_id))
    try:
        return parse_offset_log(file.read_text())
    except FileNotFoundError as error:
        raise FormatError(f"{file}: the checkpoint has no offsets of batch {batch_id}") from error
    except ValueError as error:
        raise FormatError(f"{file}: not an offset log of Spark: {error}") from error

"""Create the temporary checkpoint of a query, and read the offsets of a batch from it.

The checkpoint is removed when the query ends; a query starts at the positions in the tables.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingestd.errors import FormatError, RetryableError
from ingestd.kafka.offset_ranges import BatchOffsets, parse_offset_log

_PREFIX = "ingestd-checkpoint-"


@contextmanager
def checkpoint_folder() -> Iterator[str]:
    """Create an empty folder for the checkpoint of one query; remove it at the end of the block.

    It is created in the system's folder for temporary files. Raises RetryableError if it cannot be
    created.
    """
    try:
        path = tempfile.mkdtemp(prefix=_PREFIX)
    except OSError as error:
        raise RetryableError(
            f"cannot create a folder for Spark's checkpoint in {tempfile.gettempdir()} "
            f"({error}); free some space there, or set TMPDIR to another folder"
        ) from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def read_batch_offsets(path: str, batch_id: int) -> BatchOffsets:
    """Return the offsets that Spark planned for a micro-batch, from the checkpoint's offset log.

    `path` is the folder of the checkpoint. Raises FormatError, with the path of the file, if it is
    missing or corrupt.
    """
    file = Path(path, "offsets", str(batch_id))
    try:
        return parse_offset_log(file.read_text())
    except FileNotFoundError as error:
        raise FormatError(f"{file}: the checkpoint has no offsets of batch {batch_id}") from error
    except ValueError as error:
        raise FormatError(f"{file}: not an offset log of Spark: {error}") from error

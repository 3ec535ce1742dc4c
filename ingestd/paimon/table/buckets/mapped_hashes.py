"""Hashes on the local disk instead of in memory: the page cache decides how much of them stays.

The file has no name, so nothing has to be deleted, whatever becomes of the process; its room on
the disk is free again when the array is. Searching a mapped array touches a few of its pages.
"""

import logging
import tempfile

import numpy as np
import numpy.typing as npt

from ingestd.log import redact

_LOG = logging.getLogger(__name__)


def mapped(hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32] | None:
    """The same hashes, read-only, on the disk of `TMPDIR`; None if that has no room for them."""
    try:
        with tempfile.TemporaryFile(prefix="ingestd-hashes-", buffering=0) as file:
            hashes.tofile(file)
            return np.asarray(np.memmap(file, np.int32, "r", shape=hashes.shape))
    except OSError as error:
        context = {"bytes": hashes.nbytes, "error": redact(str(error))}
        _LOG.warning("hashes_not_mapped", extra={"ctx": context})
        return None

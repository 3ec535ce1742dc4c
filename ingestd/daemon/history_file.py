"""The console's history as a file in the folder of scratch files, so that it survives restarts.

The file decides nothing: if it is missing, damaged or of another user, the history starts empty.
"""

import hashlib
import hmac
import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ingestd.daemon.recent_history import SavedHistory

_LOG = logging.getLogger(__name__)
_SAVE_SECONDS = 60.0
_MOST_BYTES = 32 << 20
_DIGEST_BYTES = 32


def history_path(warehouse: str, pipeline: str, spark: Mapping[str, str]) -> Path:
    """Return the path of a pipeline's history, in Spark's folder for scratch files on this host.

    `spark` are the configured Spark properties.
    """
    folder = spark.get("spark.local.dir", tempfile.gettempdir())
    folder = os.environ.get("SPARK_LOCAL_DIRS", folder).split(",")[0]
    digest = hashlib.sha256(f"{warehouse}\n{pipeline}".encode()).hexdigest()
    return Path(folder) / f"ingestd-history-{digest[:16]}"


class HistoryFile:
    """A file with the history of the console and its checksum, readable by this user only.

    `ticks` is a monotonic clock in seconds.
    """

    def __init__(self, path: Path, ticks: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._ticks = ticks
        self._saved_at = ticks()

    def load(self) -> SavedHistory | None:
        """Return the saved history, or None if the file does not exist or cannot be used.

        Logs a warning if the file cannot be used.
        """
        try:
            content = self._read()
            digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
            if not hmac.compare_digest(digest, hashlib.sha256(body).digest()):
                raise ValueError("its checksum does not match")
            return msgspec.json.decode(body, type=SavedHistory)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            context = {"file": str(self._path), "error": str(error)}
            _LOG.warning("history_ignored", extra={"ctx": context})
            return None

    def _read(self) -> bytes:
        with os.fdopen(
            os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            state = os.fstat(file.fileno())
            if state.st_uid != os.geteuid() or not stat.S_ISREG(state.st_mode):
                raise ValueError("it is not a file of this user")
            return file.read(_MOST_BYTES)

    def save_if_due(self, history: Callable[[], SavedHistory]) -> None:
        """Replace the file unless it was saved, or this object created, less than a minute ago.

        `history` returns the content, and is called only if the file is replaced.
        """
        if self._ticks() - self._saved_at >= _SAVE_SECONDS:
            self.save(history())

    def save(self, history: SavedHistory) -> None:
        """Replace the file; if that is not possible, log a warning."""
        self._saved_at = self._ticks()
        body = msgspec.json.encode(history)
        try:
            number, name = tempfile.mkstemp(dir=self._path.parent, prefix=f"{self._path.name}-")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(hashlib.sha256(body).digest() + body)
                Path(name).replace(self._path)
            except OSError:
                with suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            context = {"file": str(self._path), "error": str(error)}
            _LOG.warning("history_not_saved", extra={"ctx": context})

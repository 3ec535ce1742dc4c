"""The heartbeat of a daemon: a file in the pipeline's folder that the daemon renews.

It shows other processes whether a daemon of the pipeline is running. A second file in the folder is
the request of a command that the daemon opens its tables again. Neither file affects what is
written: see `leadership`. Only the clock of the store is used.
"""

import json
from dataclasses import dataclass

from ingestd.errors import FencedError, FormatError
from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.io.probes import has_file, store_now_ms

RENEWAL_SECONDS = 10.0
ALIVE_MS = 60_000
"""A daemon whose heartbeat is older than this is not running."""

_HEARTBEAT = "heartbeat"
_REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """A running daemon: its process (`host:pid:id`), and the time of its start, in ISO 8601.

    `renewed_ms_ago` is the age of its heartbeat in milliseconds.
    """

    holder: str
    started_at: str
    renewed_ms_ago: int

    def __str__(self) -> str:
        host, pid = self.holder.split(":")[:2]
        return f"process {pid} on {host}, running since {self.started_at}"


class Heartbeat:
    """The heartbeat of the daemon `holder` of one pipeline, whose files are in `folder`.

    `started_at` is the time at which the daemon started, in ISO 8601.
    """

    def __init__(self, io: FileIO, folder: str, holder: str, started_at: str) -> None:
        self._io = io
        self._folder = folder
        self._document = json.dumps({"holder": holder, "started_at": started_at}).encode()

    def renew(self) -> None:
        """Write the heartbeat again. Raises StorageError if the write fails."""
        self._io.overwrite(f"{self._folder}/{_HEARTBEAT}", self._document)

    def withdraw(self) -> None:
        """Delete the heartbeat, unless another daemon has replaced it.

        Raises StorageError if the store does not respond.
        """
        path = f"{self._folder}/{_HEARTBEAT}"
        try:
            own = self._io.read_bytes(path) == self._document
        except FileNotFoundError:
            return
        if own:
            self._io.delete_quietly(path)

    def take_reopen_request(self) -> bool:
        """Return whether a command has asked to open the tables again, and delete the request.

        Raises StorageError if the store does not respond.
        """
        path = f"{self._folder}/{_REOPEN}"
        if not has_file(self._io, path):
            return False
        self._io.delete_quietly(path)
        return True


def running_daemon(io: FileIO, folder: str) -> RunningDaemon | None:
    """Return the daemon that renewed its heartbeat within the last 60 seconds, or None.

    Raises StorageError if the store does not respond, and FormatError if the heartbeat is invalid.
    """
    renewed = [entry for entry in io.list_entries(folder) if entry.name == _HEARTBEAT]
    if not renewed:
        return None
    age = store_now_ms(io, folder) - renewed[0].modified_ms
    # A heartbeat from the future was written before the clock of the store was set back.
    if abs(age) > ALIVE_MS:
        return None
    path = f"{folder}/{_HEARTBEAT}"
    try:
        document = json.loads(io.read_bytes(path))
        return RunningDaemon(str(document["holder"]), str(document["started_at"]), max(age, 0))
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: not a heartbeat of a daemon ({error!r}); delete it") from error


def refuse_second_daemon(io: FileIO, warehouse: str, pipelines: tuple[str, ...]) -> None:
    """Raise FencedError if a daemon of one of the pipelines is running.

    Raises StorageError if the store does not respond, and FormatError if a heartbeat is invalid.
    """
    for pipeline in pipelines:
        daemon = running_daemon(io, pipeline_folder(warehouse, pipeline))
        if daemon is not None:
            raise FencedError(
                f"pipeline {pipeline} is ingested by another daemon: {daemon}, heartbeat "
                f"{daemon.renewed_ms_ago // 1000} s ago. Stop that daemon first; if it was killed, "
                f"wait {ALIVE_MS // 1000} s; or replace it with --take-over"
            )


def request_reopen(io: FileIO, warehouse: str, pipeline: str) -> RunningDaemon | None:
    """Ask the running daemon of a pipeline to open its tables again, and return the daemon.

    If no daemon is running, writes nothing and returns None. Raises StorageError if the store does
    not respond, and FormatError if the heartbeat is invalid.
    """
    folder = pipeline_folder(warehouse, pipeline)
    daemon = running_daemon(io, folder)
    if daemon is not None:
        io.overwrite(f"{folder}/{_REOPEN}", b"")
    return daemon

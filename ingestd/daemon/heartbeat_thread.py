"""Renew the heartbeat of the daemon in a separate thread, and receive requests of commands."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from ingestd.errors import IngestdError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.heartbeat import RENEWAL_SECONDS, Heartbeat
from ingestd.ingest.tables.leadership import this_process
from ingestd.ingest.tables.pipeline_warehouse import open_file_io, pipeline_folder

_LOG = logging.getLogger(__name__)
_STOP_SECONDS = 5.0


class HeartbeatThread:
    """A thread that renews a heartbeat until `stop`.

    If a command asks for it, `reopen` is called, in a thread of its own. If the store is not
    reachable, the thread logs one warning, and tries again.
    """

    def __init__(self, heartbeat: Heartbeat, reopen: Callable[[], None]) -> None:
        self._heartbeat = heartbeat
        self._reopen = reopen
        self._stopping = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing and withdraw the heartbeat; wait at most 5 seconds for the store."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)

    def renew(self) -> None:
        """Renew the heartbeat, and call `reopen` if a command has asked for it.

        If the store is not reachable, log a warning, unless the last request failed, too.
        """
        self._report(self._beat)

    def _beat(self) -> None:
        self._heartbeat.renew()
        if self._heartbeat.take_reopen_request():
            _LOG.info("reopen_requested")
            # It waits for the batch in progress; without a heartbeat, a second daemon could start.
            threading.Thread(target=self._reopen, name="reopen", daemon=True).start()

    def _report(self, request: Callable[[], None]) -> None:
        try:
            request()
        except IngestdError as error:
            if not self._failing:
                _LOG.warning("heartbeat_not_renewed", extra={"ctx": {"error": error.message}})
            self._failing = True
        else:
            self._failing = False

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.renew()
            self._stopping.wait(RENEWAL_SECONDS)
        self._report(self._heartbeat.withdraw)


@contextmanager
def heartbeat(settings: PipelineSettings, reopen: Callable[[], None]) -> Iterator[None]:
    """Renew the heartbeat of this process during the block, and withdraw it at the end.

    `reopen` is called, in another thread, if a command asks the daemon to open its tables again.
    """
    io = open_file_io(settings)
    folder = pipeline_folder(settings.warehouse, settings.name)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    thread = HeartbeatThread(Heartbeat(io, folder, this_process(), started_at), reopen)
    thread.start()
    try:
        yield
    finally:
        thread.stop()

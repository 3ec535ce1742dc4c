"""Another writer that commits to a table all the time, in storms with short calms between."""

import threading
import time
from pathlib import Path

from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.closing import Closing

_STORM_SECONDS = 2.0
_CALM_SECONDS = 0.2
_NOTHING = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, ())


class Rival(Closing):
    """Commits nothing, again and again, while the block runs: every snapshot is in the way."""

    def __init__(self, warehouse: Path, table: str) -> None:
        catalog = load_catalog("filesystem", str(warehouse), {})
        self._table = catalog.get_table(Identifier.parse(table))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rival", daemon=True)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def close(self) -> None:
        """The last commit ends."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_CALM_SECONDS):
            state = load_state(self._table)
            until = time.monotonic() + _STORM_SECONDS
            while time.monotonic() < until:
                now_ms = int(time.time() * 1000)
                done = commit(
                    self._table, "rival", _NOTHING, state=state, now_ms=now_ms, allow_empty=True
                )
                state = done.state

"""Manifests that a process has read before: they never change, so they need not be read again.

Nothing is kept unless a process asks for it: those that read a table's manifests once would hold
memory in vain. One that keeps a table up reads them for each job, and most are the same as for
the last one. Specification: Manifest.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from ingestd.paimon.spec.manifest import ManifestEntry


class KeptManifests:
    """Entries of manifests by path, the longest unused ones given up first."""

    def __init__(self, max_entries: int = 0) -> None:
        self._max_entries = max_entries
        self._count = 0
        self._manifests: OrderedDict[str, Sequence[ManifestEntry]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def entries(self) -> int:
        """How many entries are here."""
        return self._count

    def limit(self, max_entries: int) -> None:
        """Hold no more than so many entries from now on."""
        with self._lock:
            self._max_entries = max_entries
            self._give_up()

    def get(self, path: str) -> Sequence[ManifestEntry] | None:
        """The entries of a manifest in order, if they are here."""
        with self._lock:
            found = self._manifests.get(path)
            if found is not None:
                self._manifests.move_to_end(path)
            return found

    def put(self, path: str, entries: Sequence[ManifestEntry]) -> None:
        """Keep the entries of a manifest; one that is above the limit by itself is not kept."""
        with self._lock:
            if path in self._manifests or len(entries) > self._max_entries:
                return
            self._manifests[path] = entries
            self._count += len(entries)
            self._give_up()

    def _give_up(self) -> None:
        while self._count > self._max_entries:
            self._count -= len(self._manifests.popitem(last=False)[1])


KEPT = KeptManifests()

"""Manifests that a process has read before: they never change, so they need not be read again.

Nothing is kept unless a process asks for it: those that read a table's manifests once would hold
memory in vain. One that keeps a table up reads them for each job, and most are the same as for
the last one.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/
"""

import threading
from collections import OrderedDict
from collections.abc import Container, Sequence

from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.manifest import ManifestEntry

_ENTRY_BYTES = 1024


class ManifestCache:
    """Entries of manifests by path, the longest unused ones given up first.

    An entry with more than 1 KiB of keys and statistics counts as several.
    """

    def __init__(self, max_entries: int = 0) -> None:
        self._max_entries = max_entries
        self._count = 0
        self._manifests: OrderedDict[str, tuple[Sequence[ManifestEntry], int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def entries(self) -> int:
        """How many entries are here."""
        return self._count

    def limit(self, max_entries: int) -> None:
        """Hold no more than this many entries from now on."""
        with self._lock:
            self._max_entries = max_entries
            self._drop_oldest()

    def get(self, path: str) -> Sequence[ManifestEntry] | None:
        """The entries of a manifest in order, if they are here."""
        with self._lock:
            found = self._manifests.get(path)
            if found is None:
                return None
            self._manifests.move_to_end(path)
            return found[0]

    def put(self, path: str, entries: Sequence[ManifestEntry]) -> None:
        """Keep the entries of a manifest; one that is above the limit by itself is not kept."""
        count = sum(map(_entries_counted, entries))
        with self._lock:
            if path in self._manifests or count > self._max_entries:
                return
            self._manifests[path] = (entries, count)
            self._count += count
            self._drop_oldest()

    def retain(self, folder: str, paths: Container[str]) -> None:
        """Drop the manifests of a folder that are not among `paths`.

        Each commit makes manifests and each compaction merges some: those that the newest snapshot
        no longer lists are never read again, and would fill the limit with what is dead.
        """
        with self._lock:
            gone = [
                path
                for path in self._manifests
                if path.startswith(f"{folder}/") and path not in paths
            ]
            for path in gone:
                self._count -= self._manifests.pop(path)[1]

    def _drop_oldest(self) -> None:
        while self._count > self._max_entries:
            self._count -= self._manifests.popitem(last=False)[1][1]


def _entries_counted(entry: ManifestEntry) -> int:
    file = entry.file
    size = len(file.min_key) + len(file.max_key) + len(file.embedded_index or b"")
    size += _stats_bytes(file.key_stats) + _stats_bytes(file.value_stats)
    return 1 + size // _ENTRY_BYTES


def _stats_bytes(stats: SimpleStats) -> int:
    return len(stats.min_values) + len(stats.max_values) + 8 * len(stats.null_counts)


KEPT = ManifestCache()

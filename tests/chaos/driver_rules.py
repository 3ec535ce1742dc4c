"""Rules of the recovery, each of which can be taken out, to see that lives find it missing."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

from ingestd.ingest.recovery.log_coverage import LogComparison
from ingestd.ingest.tables.log_positions import furthest, shared_if_equal
from ingestd.ingest.tables.managed_table import ManagedTable, open_table
from ingestd.ingest.tables.progress import PipelineProgress
from ingestd.ingest.tables.registry_opening import OpenedTables, RegistryOpening

Rule = Callable[[], contextlib.AbstractContextManager[object]]
RULES: dict[str, Rule] = {}


def _patched(what: str, where: str, by: Any) -> None:
    RULES[what] = lambda: mock.patch(f"ingestd.{where}", by)


def _nothing(*_: object, **__: object) -> None:
    """What is in the place of a step that is left out."""


def _empty(*_: object, **__: object) -> list[Any]:
    return []


_patched(
    "each log is read on from the least advanced table",
    "ingest.tables.table_registry.TableRegistry.floor",
    lambda lake: lake.progress.end,
)
_patched(
    "batches that a death cut off are not finished",
    "ingest.tables.progress.PipelineProgress.finished",
    property(lambda record: record.end),
)
_patched(
    "rows that a table has are left out",
    "ingest.rows.conform.only_new",
    lambda source, chunk, target, batch: (batch, {"covered": 0}),
)
_patched(
    "topics that were created again or deleted are noticed",
    "ingest.recovery.log_coverage.lost_topics",
    _empty,
)
_patched(
    "records that expired unread are named",
    "ingest.recovery.log_coverage.lost_ranges",
    _empty,
)
_patched(
    "logs are compared with what was read of them",
    "ingest.recovery.start.compare_logs",
    lambda *_: LogComparison(),
)
_patched(
    "another pipeline on the same tables is refused",
    "ingest.recovery.start._refuse_shared_tables",
    _nothing,
)
_patched(
    "a renamed source is the same source",
    "ingest.recovery.start._log_renamed_sources",
    lambda lake, settings, logs: lake.note(
        replace(lake.progress, topics={**lake.progress.topics, **logs.names})
    ),
)
_patched(
    "a record is looked for in all snapshots that are left",
    "ingest.tables.managed_table.newest_record",
    lambda table, snapshot, name: snapshot if snapshot and name in snapshot.properties else None,
)
_patched(
    "a table without a record is for a person to decide",
    "ingest.tables.registry_opening._progress_lost",
    lambda name, *_: AssertionError(name),
)


def _judged_by_name(
    self: RegistryOpening, name: str, one: ManagedTable, progress: PipelineProgress
) -> ManagedTable:
    if self._claims and name in self._claims.complete:
        covered = furthest(one.covered, self._claims.progress.end)
        return replace(one, covered=shared_if_equal(covered, progress.end))
    return _JUDGED(self, name, one, progress)


_JUDGED = RegistryOpening.judged
_patched(
    "claims hold for one record of a table",
    "ingest.tables.registry_opening.RegistryOpening.judged",
    _judged_by_name,
)


def _without_missing(self: RegistryOpening, undecided: Sequence[str] = ()) -> OpenedTables:
    return replace(_OPEN(self, undecided), missing=())


_OPEN = RegistryOpening.open
_patched(
    "dropped tables are named",
    "ingest.tables.registry_opening.RegistryOpening.open",
    _without_missing,
)


def _without_overwrites(name: str, table: Any, pipelines: Sequence[str]) -> ManagedTable:
    return replace(_OPEN_TABLE(name, table, pipelines), overwritten_by=None)


_OPEN_TABLE = open_table
_patched(
    "overwrites by other programs are named",
    "ingest.tables.registry_opening.open_table",
    _without_overwrites,
)


class _Any(str):
    """A checksum that no other differs from."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False


_patched("claims have a checksum", "ingest.tables.claims._checksum", lambda _: _Any(""))

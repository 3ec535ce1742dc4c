"""Open the tables of a pipeline, and derive the progress of the pipeline from their records."""

import logging
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ingestd.errors import CommitConflictError, ProgressLostError, UnsupportedError
from ingestd.ingest.rows.router import Router
from ingestd.ingest.settings.context import marked_pipelines, other_pipelines
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.claims import Claims, read_claims
from ingestd.ingest.tables.log_positions import (
    LogOffsets,
    furthest,
    lowest,
    offsets_of,
    shared_if_equal,
)
from ingestd.ingest.tables.managed_table import ManagedTable, open_table
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    pipelines_in,
    property_names,
)
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.paths import BRANCH_MARK
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import snapshots_from_latest
from ingestd.paimon.table.metadata.table_state import load_state

_LOG = logging.getLogger(__name__)
_THREADS = 8


@dataclass(frozen=True, slots=True)
class OpenedTables:
    """The tables of a pipeline as they were opened, and the progress of the pipeline.

    `tables` are the open tables, by identifier. `missing` are tables that had a record but were
    dropped or have no snapshot. `others` are the tables of the database to which other pipelines
    write, by identifier.
    """

    tables: Mapping[str, ManagedTable]
    progress: PipelineProgress
    missing: tuple[str, ...]
    others: Mapping[str, FileStoreTable]


class RegistryOpening:
    """Opens the tables of one pipeline, by their progress records and the claims file."""

    def __init__(self, settings: PipelineSettings, catalog: Catalog, io: FileIO) -> None:
        self._settings = settings
        self._catalog = catalog
        self._io = io
        self._pipelines = settings.names
        self._router = Router(settings.routing, settings.database)
        mapped = self._router.mapped_tables
        self._branches = {name for name in mapped if BRANCH_MARK in name}
        self._replaced = {name.partition(BRANCH_MARK)[0] for name in self._branches}
        self._claims: Claims | None = None
        self._undecided: Collection[str] = ()

    def open(self, undecided: Collection[str] = ()) -> OpenedTables:
        """Load all tables that are marked for this pipeline or named in progress records.

        Branches are loaded if the table mapping names them. A table of which a branch is written,
        or whose record was written for another branch, is loaded if rows are routed to it; until
        then it stays as it is, and continues from its record later.

        Tables in `undecided` are excluded, because an operator is about to set their covered
        offsets; in this case all other tables that lack a record are excluded, too. Raises
        FormatError if a table or record is damaged, UnsupportedError if another version of ingestd
        wrote a record, TableNotFoundError if a named branch does not exist, ProgressLostError if a
        table lacks a record that it should have, and StorageError if the warehouse does not
        respond.
        """
        self._claims, self._undecided = self._read_claims(), undecided
        others: dict[str, FileStoreTable] = {}
        opened = self._load_marked(others)
        progress = self._merged(managed.progress for managed in opened.values() if managed.progress)
        no_targets = {name for name in progress.tables if BRANCH_MARK in name} - self._branches
        for name in progress.tables.keys() - opened.keys() - no_targets:
            if self._catalog.table_exists(Identifier.parse(name)):
                opened[name] = self.load(name)
        left_out = no_targets | {
            name for name, managed in opened.items() if not self._is_target(name, managed)
        }
        missing = self._missing(opened, progress, left_out)
        # Several tables may lack a record; an operator decides on them one by one.
        left_out |= {
            name for name, managed in opened.items() if undecided and self._lacks(name, managed)
        }
        tables = {
            name: self.judged(name, managed, progress)
            for name, managed in opened.items()
            if name not in {*undecided, *left_out}
        }
        return OpenedTables(tables, progress, missing, others)

    def _missing(
        self,
        opened: Mapping[str, ManagedTable],
        progress: PipelineProgress,
        left_out: Collection[str],
    ) -> tuple[str, ...]:
        """Return the tables that had a record, but were dropped or replaced since."""
        return tuple(
            name
            for name in progress.tables
            if name not in left_out
            and (name not in opened or self._was_replaced(opened[name]))
            and progress.has_record(name)
            and name != self._settings.dead_letters
        )

    def _is_target(self, name: str, managed: ManagedTable) -> bool:
        """Return whether rows may be routed to a table.

        This is asked only of tables whose record is a copy, or of which a branch is written.
        """
        progress, asked = managed.progress, managed.has_copied_record or name in self._replaced
        if progress is None or not asked or name in self._router.mapped_tables:
            return True
        topics = {progress.pipeline.topic_name(key) for key in progress.topic_keys}
        return any(
            self._router.possible_target(topic, source_table.unqualified) == name
            for topic in topics
            for source_table in progress.source_tables
        )

    def _is_marked(self, managed: ManagedTable) -> bool:
        return not marked_pipelines(managed.table).isdisjoint(self._pipelines)

    def _lacks(self, name: str, managed: ManagedTable) -> bool:
        """Return whether a table lacks a record that it should have."""
        ours = self._is_marked(managed) and name != self._settings.dead_letters
        return ours and managed.is_of_others and not self._precedes_record(managed)

    def _precedes_record(self, managed: ManagedTable) -> bool:
        """Return whether the snapshots of a table are from before this pipeline wrote it.

        Then it has records of other pipelines only, and either a snapshot whose schema does not
        have the mark yet, or still its first snapshot, with such a record. Snapshots expire from
        the oldest on, so a later one with a record of this pipeline would exist: the table was
        rolled back below that, or the pipeline ended after it had marked the empty table.
        """
        table, records = managed.table, {*pipelines_in(managed.state.carried)}
        others = other_pipelines(table, self._pipelines)
        # The record of a pipeline without a mark may be one of this pipeline, under an old name.
        if not self._is_marked(managed) or not records or not records.issubset(others):
            return False
        schemas: set[int] = set()
        for snapshot in snapshots_from_latest(table.io, table.paths):
            if snapshot.id == 1 and pipelines_in(snapshot.properties):
                return True
            schemas.add(snapshot.schema_id)
        return any(
            marked_pipelines(table.at_schema(schema_id)).isdisjoint(self._pipelines)
            for schema_id in schemas
        )

    def _was_replaced(self, managed: ManagedTable) -> bool:
        """Return whether a table that had a record was replaced by another table.

        This is assumed if it has no snapshot, or has neither a record nor the mark of this
        pipeline.
        """
        return managed.is_empty or (managed.progress is None and not self._is_marked(managed))

    def load(self, name: str) -> ManagedTable:
        """Return a table of the catalog with its newest record.

        Raises FormatError if the table or its record is damaged, UnsupportedError if another
        version of ingestd wrote the record, ProgressLostError if the record was lost by a rollback,
        and the errors of the catalog.
        """
        return self._opened(name, self._catalog.get_table(Identifier.parse(name)))

    def _opened(self, name: str, table: FileStoreTable) -> ManagedTable:
        """Open a table; while an operator decides, a record of another version counts as none."""
        try:
            return open_table(name, table, self._pipelines)
        except UnsupportedError:
            if not self._undecided:
                raise
            state = load_state(table)
            names = [name for pipeline in self._pipelines for name in property_names(pipeline)]
            kept = {name: state.carried[name] for name in names if name in state.carried}
            return ManagedTable(table, state, properties=kept)

    def _load_marked(self, others: dict[str, FileStoreTable]) -> dict[str, ManagedTable]:
        """Return the tables that are marked for this pipeline, or named in the claims file.

        Adds tables that are marked for other pipelines to `others`.
        """
        database = self._settings.database
        names = [f"{database}.{table}" for table in self._catalog.list_tables(database)]
        names += sorted(self._branches)
        named = self._branches | set(self._claims.progress.tables if self._claims else ())
        named |= {self._settings.dead_letters}

        def opened(name: str) -> ManagedTable | None:
            table = self._catalog.get_table(Identifier.parse(name))
            if other_pipelines(table, self._pipelines) and name != self._settings.dead_letters:
                others[name] = table
            mine = not marked_pipelines(table).isdisjoint(self._pipelines) or name in named
            return self._opened(name, table) if mine else None

        with ThreadPoolExecutor(_THREADS, "open") as pool:
            loaded = dict(zip(names, pool.map(opened, names), strict=True))
        return {name: managed for name, managed in loaded.items() if managed is not None}

    def judged(self, name: str, managed: ManagedTable, progress: PipelineProgress) -> ManagedTable:
        """Determine the covered offsets of an opened table, and return the table with them.

        They are the offsets in its record, or larger offsets in the claims file if this has a valid
        claim. A new table, which has no record, covers the progress of the pipeline, and one from
        before the first record of the pipeline nothing that it has read. Raises
        ProgressLostError if the table is marked for this pipeline and has snapshots, but no record.
        """
        is_rolled_back = managed.is_of_others and self._precedes_record(managed)
        if is_rolled_back and progress.has_record(name):
            of_pipeline = replace(progress, end=progress.beginning)
            record = TableProgress(of_pipeline, branch=managed.table.branch)
            managed = replace(managed, progress=record, covered=progress.beginning)
        if managed.progress is not None:
            covered = managed.covered
            claimed = self._claims.complete.get(name) if self._claims else None
            if self._claims and claimed and claimed.record_id == managed.progress.record_id:
                covered = furthest(covered, self._claims.progress.end)
            return replace(managed, covered=shared_if_equal(covered, progress.end))
        if self._lacks(name, managed) and name not in self._undecided:
            others = other_pipelines(managed.table, self._pipelines)
            raise _progress_lost(name, self._settings, others)
        return replace(managed, covered=progress.end)

    def needs_record(self, name: str, managed: ManagedTable) -> bool:
        """Return whether a table needs a record of its own, and the mark, before it is written.

        By these the next start opens it, and continues from there. Without a record, a table with
        rows of others and the mark of this pipeline would count as one whose record was removed; a
        process that ended before it set the mark has left a record without it.
        """
        lacks_mark = not managed.is_empty and not self._is_marked(managed)
        return name not in self._undecided and (managed.has_copied_record or lacks_mark)

    def refuse_behind(self, name: str, managed: ManagedTable, progress: PipelineProgress) -> None:
        """Raise CommitConflictError if a table that was opened late covers less than `progress`.

        The batch in progress may begin after its covered offsets. `open` considers its record.
        """
        if managed.progress is None or name in self._undecided:
            return
        covered = lowest([managed.covered, progress.end], progress.origin)
        if offsets_of(covered) != offsets_of(progress.end):
            raise CommitConflictError(
                f"table {name} appeared with a progress record from before this batch; the tables "
                "are opened again, and it continues from what it covers"
            )

    def _merged(self, records: Iterable[TableProgress]) -> PipelineProgress:
        """Merge the progress of the pipeline from all records and the claims file."""
        known = list({id(record.pipeline): record.pipeline for record in records}.values())
        end = self._claims.progress.end if self._claims else {}
        for progress in known:
            end = furthest(end, progress.finished)
        if self._claims:
            known.append(self._claims.progress)
        return PipelineProgress(
            end=end,
            origin=_least(progress.origin for progress in known),
            topics={key: name for progress in known for key, name in progress.topics.items()},
            tables=_most(progress.tables for progress in known),
            dropped=_most(progress.dropped for progress in known),
            sources=frozenset().union(*(progress.sources for progress in known)),
            accepted=frozenset().union(*(progress.accepted for progress in known)),
            routing=known[-1].routing if known else "",
        )

    def _read_claims(self) -> Claims | None:
        for pipeline in self._pipelines:
            claims = read_claims(self._io, self._settings.warehouse, pipeline)
            if claims is None:
                continue
            before = {"warehouse": claims.warehouse, "database": claims.database}
            now = {"warehouse": self._settings.warehouse, "database": self._settings.database}
            if before != now:
                _LOG.warning("target_changed", extra={"ctx": {"from": before, "to": now}})
            return claims if claims.database == now["database"] else None
        return None


def _least(offsets: Iterable[LogOffsets]) -> dict[str, dict[int, int]]:
    least: dict[str, dict[int, int]] = {}
    for log_offsets in offsets:
        for key, partitions in log_offsets.items():
            known = least.setdefault(key, {})
            for partition, offset in partitions.items():
                known[partition] = min(offset, known.get(partition, offset))
    return least


def _most(numbers: Iterable[Mapping[str, int]]) -> dict[str, int]:
    most: dict[str, int] = {}
    for table_numbers in numbers:
        for name, number in table_numbers.items():
            most[name] = max(number, most.get(name, 0))
    return most


def _progress_lost(
    name: str, settings: PipelineSettings, others: Collection[str]
) -> ProgressLostError:
    shared = f" Pipeline {', '.join(others)} writes it, too." if others else ""
    return ProgressLostError(
        f"table {name}: none of its snapshots contains the progress of pipeline {settings.name}, "
        "although it has written it: another writer has expired them all, or removed the records."
        f"{shared} An operator must decide: `ingestd begin` sets a record for the table. If "
        "nothing rolled back, restored, fast-forwarded or overwrote it since: "
        f"`ingestd begin -c CONFIG {name} --at claims`; otherwise see docs/operations.md"
    )

"""The tables of one pipeline as the driver knows them between batches, and changes to them.

The tables are the truth: each carries the offsets it holds in its snapshots. What is kept here
only spares reading it again. One `Lake` belongs to one driver and is not shared between threads,
but for `commit`, which may run for different tables at once.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ingestd.crash_points import Point, reach
from ingestd.errors import FencedError
from ingestd.ingest.letters.dead_letter import columns_to_add, dead_letter_schema
from ingestd.ingest.settings.context import BatchContext, Coverage, Emptying
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake_table import LakeTable, mark_of, open_table, table_context
from ingestd.ingest.tables.mirror import (
    Mirror,
    at_most,
    begun_again,
    decode_mirror,
    encode_mirror,
    finished_offsets,
)
from ingestd.ingest.tables.progress import (
    Step,
    advance,
    encode_properties,
    furthest,
    start_offsets,
)
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.schema import SchemaChange, TableSchema
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import with_user
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_LOG = logging.getLogger(__name__)


_CREATE_THREADS = 8


class Lake:
    """Opens, evolves and commits to the tables of a pipeline, by identifier "database.table".

    `mirror_path` is a small file beside the tables; `now_ms` the clock in milliseconds.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        catalog: Catalog,
        io: FileIO,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._io = io
        self._now_ms = now_ms
        self._mirror_path = f"{settings.warehouse}/.ingestd/{settings.name}/progress.json"
        self._mirror: Mirror | None = None
        self._until: Coverage = {}
        self._by_topic: dict[tuple[str, str], set[str]] = {}
        self._unsettled: set[str] = set()
        self.epoch = 1
        self.tables: dict[str, LakeTable] = {}

    def open(self) -> None:
        """Load the tables that this pipeline has written before.

        One that shows no trace of it any more takes what comes from now on, and is logged.
        Raises FormatError if a table, or the mirror, is damaged.
        """
        self._mirror = self._read_mirror()
        self._until = self._mirror.until if self._mirror else {}
        self._catalog.create_database(self._settings.database)
        for name in self._candidates():
            found = self._load(name)
            if found.progress is not None or (self._mirror and name in self._mirror.tables):
                self._take(name, found)
        for name in begun_again(self._mirror, {n: t.progress for n, t in self.tables.items()}):
            _LOG.warning("table_begins_again", extra={"ctx": {"table": name}})
        self.ensure(self.dead_letters, dead_letter_schema(self._now_ms()))
        missing = columns_to_add(self.tables[self.dead_letters].table.schema)
        if missing:
            self.alter(self.dead_letters, missing)
        epochs = [one.progress.epoch for one in self.tables.values() if one.progress]
        self.epoch = max(epochs, default=0) + 1

    def start_offsets(self) -> Coverage:
        """First offset that some table may still need, by source, topic and partition.

        The newest batch counts as not finished unless the mirror says so: tables that it was the
        first to feed may be missing.
        """
        held = start_offsets(one.coverage for one in self.tables.values())
        records = (one.progress for one in self.tables.values())
        return at_most(held, finished_offsets(self._until, records))

    def has_finished(self, one: OffsetRange) -> bool:
        """Whether some run has brought the whole range to all tables, to new ones too."""
        topic = self._until.get(one.source, {}).get(one.topic, {})
        return one.until <= topic.get(one.partition, 0)

    def ensure(self, name: str, schema: TableSchema) -> None:
        """Open a table, creating it with `schema` if it is not there."""
        self.ensure_all({name: schema})

    def ensure_all(self, schemas: Mapping[str, TableSchema]) -> None:
        """Open tables, creating those that are not there, several at once."""
        missing = [(name, one) for name, one in schemas.items() if name not in self.tables]
        with ThreadPoolExecutor(_CREATE_THREADS, "create") as pool:
            found = list(pool.map(self._created, missing))
        for (name, _), one in zip(missing, found, strict=True):
            self._take(name, one)

    def adopt(self, name: str) -> FileStoreTable | None:
        """Open a table that exists in the catalog but was not known here; None if there is none."""
        if name not in self.tables:
            if not self._catalog.table_exists(Identifier.parse(name)):
                return None
            self._take(name, self._load(name))
        return self.tables[name].table

    def alter(self, name: str, changes: Sequence[SchemaChange]) -> None:
        """Publish one new schema of a table with all the changes."""
        table = self._catalog.alter_table(Identifier.parse(name), changes, self._now_ms())
        self.tables[name] = replace(self.tables[name], table=table)

    def fed_by(self, source: str, topic: str) -> Collection[str]:
        """Names of the tables that a topic has ever brought rows to."""
        return self._by_topic.get((source, topic), ())

    def context(
        self,
        slots: int,
        truncates: Mapping[str, Emptying],
        ranges: Iterable[OffsetRange] | None = None,
        also: Collection[str] = (),
    ) -> BatchContext:
        """What the tasks of a batch must know; `truncates` are tables that it empties.

        Given the batch's `ranges`, it holds the tables that their topics have fed before, and
        those of `also`; the names of all others are in `others`. Otherwise it holds all tables.
        """
        settings = self._settings
        wanted = set(self.tables)
        if ranges is not None:
            topics = {(one.source, one.topic) for one in ranges}
            wanted = {self.dead_letters, *also, *truncates}
            wanted = wanted.union(*(self.fed_by(*topic) for topic in topics)) & self.tables.keys()
        return BatchContext(
            pipeline=settings.name,
            database=settings.database,
            tables={
                name: table_context(name, self.tables[name], truncates.get(name))
                for name in sorted(wanted)
            },
            others=frozenset(self.tables.keys() - wanted),
            routing=settings.routing,
            sources=settings.sources,
            dead_letters=self.dead_letters,
            dead_letter_topic=settings.dead_letter_topic,
            error_policy=settings.error_policy,
            slots=slots,
            defaults=settings.defaults,
            settings=settings.tables,
            max_chunk_records=settings.limits.max_chunk_records,
            max_chunk_bytes=settings.limits.max_chunk_bytes,
            max_record_bytes=settings.limits.max_record_bytes,
            max_run_bytes=settings.limits.max_run_bytes,
            index_cache_bytes=settings.limits.index_cache_bytes,
        )

    @property
    def dead_letters(self) -> str:
        """Identifier of the table of rejected records."""
        return f"{self._settings.database}.{self._settings.dead_letter_table}"

    def commit(
        self, name: str, messages: Iterable[CommitMessage], step: Step, *, overwrite: bool
    ) -> CommitResult:
        """Publish files of one table together with the offsets they come from.

        Raises what `ingestd.paimon.table.commit.table_commit.commit` raises; FencedError also when
        another process of this pipeline has committed to the table.
        """
        one = self.tables[name]
        user = self._settings.commit_user
        state = with_user(one.table, one.state, user)
        progress = advance(one.progress, step)
        newest = one.newest.commit_identifier if one.newest else 0
        record = encode_properties(progress)
        committable = ManifestCommittable(
            identifier=max(state.committed[user], newest) + 1,
            messages=tuple(messages),
            properties=record,
            overwrite=overwrite,
        )
        result = commit(one.table, user, committable, state=state, now_ms=self._now_ms())
        if result.status == "replayed":
            raise FencedError(
                f"table {name}: another process of pipeline {self._settings.name} committed "
                f"identifier {committable.identifier} first; stop one of the two"
            )
        if result.status == "committed" and result.snapshot is not None:
            landed = LakeTable(
                table=one.table,
                state=result.state,
                progress=progress,
                coverage=furthest(one.coverage, progress.covered),
                newest=mark_of(result.snapshot),
                record=record,
            )
            self._note_topics(name, landed)
            self.tables[name] = landed
        return result

    def finish(self, until: Coverage) -> None:
        """Note that everything up to `until` is in the tables, and write the mirror.

        Costs what moved since the last batch, and the writing of one document.
        """
        for name in self._unsettled.union(*map(self._fed_by_key, self._moved(until))):
            one = self.tables[name]
            own = {
                source: {topic: until[source][topic] for topic in topics if topic in until[source]}
                for source, topics in one.coverage.items()
                if source in until
            }
            self.tables[name] = replace(one, coverage=furthest(one.coverage, own))
        self._unsettled.clear()
        self._until = furthest(self._until, until)
        marks = {name: one.newest for name, one in self.tables.items()}
        records = {name: one.record for name, one in self.tables.items() if one.record}
        mirror = Mirror(self._settings.name, marks, self._until, records)
        self._io.overwrite(self._mirror_path, encode_mirror(mirror))
        reach(Point.MIRROR_WRITTEN)

    def _moved(self, until: Coverage) -> list[tuple[str, str]]:
        """Topics with an offset that is not the one of the batch before."""
        return [
            (source, topic)
            for source, topics in until.items()
            for topic, partitions in topics.items()
            if partitions != self._until.get(source, {}).get(topic)
        ]

    def _fed_by_key(self, key: tuple[str, str]) -> Collection[str]:
        return self.fed_by(*key)

    def _created(self, wanted: tuple[str, TableSchema]) -> LakeTable:
        name, schema = wanted
        self._catalog.create_table(Identifier.parse(name), schema, ignore_if_exists=True)
        return self._load(name)

    def _take(self, name: str, found: LakeTable) -> None:
        """Know a table that was opened just now; the next batch's end counts for it whole."""
        self._note_topics(name, found)
        self._unsettled.add(name)
        self.tables[name] = found

    def _note_topics(self, name: str, one: LakeTable) -> None:
        for source, topics in one.coverage.items():
            for topic in topics:
                self._by_topic.setdefault((source, topic), set()).add(name)

    def _candidates(self) -> list[str]:
        """Tables that may be ours: those of the mirror, or without one all of the database."""
        if self._mirror is not None:
            return [
                name
                for name in self._mirror.tables
                if self._catalog.table_exists(Identifier.parse(name))
            ]
        database = self._settings.database
        return [f"{database}.{table}" for table in self._catalog.list_tables(database)]

    def _load(self, name: str) -> LakeTable:
        table = self._catalog.get_table(Identifier.parse(name))
        return open_table(name, table, self._settings.commit_user, self._mirror, self._mirror_path)

    def _read_mirror(self) -> Mirror | None:
        try:
            data = self._io.read_bytes(self._mirror_path)
        except FileNotFoundError:
            return None
        return decode_mirror(data, self._mirror_path)

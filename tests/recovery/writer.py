"""Commits of the daemon, its claims file, and what the judge notes of both."""

from dataclasses import replace
from typing import Self

from tests.recovery.broker import Key, Log, Position
from tests.recovery.memory import Memory, furthest
from tests.recovery.tables import (
    DEAD_LETTERS,
    Claims,
    Letter,
    Progress,
    Snapshot,
    Table,
    Vector,
    Warehouse,
    newest_records,
)
from tests.recovery.world import ReopenError, World


class Writer:
    """The tables of a pipeline as one process knows them, and how it commits to them."""

    def __init__(self, world: World, role: str) -> None:
        self.world = world
        self.role = role
        self.settings = world.settings[role]
        self.memory = Memory()
        self._limit = 1
        self._decided: dict[Key, int] = {}
        self._recalled: frozenset[Key] = frozenset()

    def copy(self, world: World) -> Self:
        """The same process in a copy of its world."""
        one = object.__new__(type(self))
        one.world, one.role, one.settings = world, self.role, self.settings
        one.memory, one._limit, one._decided = self.memory.copy(), self._limit, {}
        one._recalled = self._recalled
        return one

    def _warehouse(self) -> Warehouse:
        return self.world.warehouse_of(self.settings)

    def _on(self, rule: str) -> bool:
        return rule not in self.world.off

    def _create(self, name: str) -> None:
        """Make a table, or take one that others have made; one with a record is opened again."""
        tables, memory = self._warehouse().tables, self.memory
        there = tables.get(name)
        token = there.snapshots[-1].token if there is not None and there.snapshots else 0
        if there is not None and memory.base.get(name) != token:
            raise ReopenError  # it came after the start
        table = there or Table()
        tables[name] = replace(table, marks=table.marks | {self.settings.pipeline})
        memory.base[name] = token
        memory.coverage[name] = dict(memory.finished)
        memory.fed[name] = frozenset()
        self.world.step()

    # Commits

    def idle(self) -> None:
        """Commit to tables that have brought nothing for long, so that their records are new."""
        for name in sorted(self.memory.coverage):
            self._commit(name, (), self.memory.finished, {}, [])

    def _commit(
        self,
        name: str,
        rows: tuple[tuple[Key, int], ...],
        start: Vector,
        until: Vector,
        dead_letters: list[Letter],
    ) -> None:
        memory, warehouse = self.memory, self._warehouse()
        table = self._base(name)
        vector = memory.coverage[name]
        for key, position in start.items():
            if rows and memory.covered(name, key).offset < position.offset:
                raise AssertionError(f"{name}: a gap at {key}")
        finished = memory.finished
        if not self._on("finished-recorded"):
            finished = furthest(finished, vector)
        end = furthest(vector, until)
        if not self._on("complete-record"):
            end = {k: at for k, at in end.items() if at.offset > memory.begins(k).offset}
        memory.sequence += 1
        memory.names.add(name)
        memory.fed[name] = memory.fed[name] | {key.topic_id for key, _ in rows}
        record = Progress(
            self.world.number(),
            memory.sequence,
            end,
            dict(finished),
            memory.fed[name],
            frozenset(memory.names),
            frozenset(memory.sources),
            dict(memory.origin),
            self._topic_names(),
            frozenset(memory.retired),
            self.settings.routing,
        )
        records = newest_records(table, self.world.off) if self._on("other-records-copied") else {}
        if not self._on("copy-marks-overwrite"):
            records = {name: replace(one, overwritten=False) for name, one in records.items()}
        if self._on("formerly-replaces"):
            records = {k: v for k, v in records.items() if k not in self.settings.formerly}
        records[self.settings.pipeline] = record
        token, latest = self.world.number(), table.latest
        snapshot = Snapshot(
            token,
            latest.id + 1 if latest else 1,
            self.settings.pipeline,
            table.rows + tuple(uid for _, uid in rows),
            records,
        )
        marks = table.marks | {self.settings.pipeline}
        snapshots = (*table.snapshots, snapshot)
        warehouse.tables[name] = replace(table, snapshots=snapshots, marks=marks)
        memory.coverage[name] = dict(end)
        memory.base[name], memory.bound[name] = token, record.token
        warehouse.dead_letters.extend(dead_letters)
        for key, offset in self._decided.items():
            warehouse.begun.setdefault(key, offset)
            warehouse.earliest[key] = min(offset, warehouse.earliest.get(key, offset))
        self._decided.clear()
        self.world.step()

    def _base(self, name: str) -> Table:
        """The table to build on; ReopenError unless the known snapshot is below its newest one."""
        table, base = self._warehouse().tables.get(name), self.memory.base[name]
        if table is None:
            if base == 0 and name == DEAD_LETTERS:
                return Table()
            raise ReopenError
        if self._on("base-by-identity"):
            tokens = [snapshot.token for snapshot in table.snapshots]
            if base and base not in tokens:
                raise ReopenError
            above = table.snapshots[tokens.index(base) + 1 if base else 0 :]
            if any(one.overwrite or self.settings.pipeline in one.records for one in above):
                raise ReopenError
        return table

    def _topic_names(self) -> dict[int, str]:
        return dict(self.memory.topics)

    def _write_claims(self) -> None:
        """Overwrite the claims file: which tables lack nothing below what is finished."""
        memory = self.memory
        memory.sequence += 1
        memory.met = False
        listed = {
            name: token
            for name, token in memory.bound.items()
            if not self._on("claims-whole-tables")
            or all(
                memory.covered(name, key).offset >= at.offset for key, at in memory.finished.items()
            )
        }
        self._warehouse().files[f"claims/{self.settings.pipeline}"] = Claims(
            memory.sequence,
            dict(memory.finished),
            listed,
            frozenset(memory.names),
            frozenset(memory.sources),
            dict(memory.origin),
            self._topic_names(),
            frozenset(memory.retired),
        )
        self.world.step()

    # What only the judge reads

    def _note_begun(self) -> None:
        """A partition begins at its origin, or at its first offset if its source was founded."""
        warehouse = self._warehouse()
        sources = {
            topic: source.name for source in self.settings.sources for topic in source.topics
        }
        for topic, key, log in self.world.logs(self.settings):
            if key not in warehouse.begun:
                late = sources[topic] in warehouse.founded and key not in self._recalled
                first = log.first if late else self.memory.begins(key).offset
                warehouse.begun[key] = first
                warehouse.earliest[key] = min(first, warehouse.earliest.get(key, first))
        warehouse.founded.update(source.name for source in self.settings.sources)

    def _note_settled(
        self, logs: list[tuple[str, Key, Log]], starts: Vector, until: Vector
    ) -> None:
        settled = self._warehouse().settled
        for name, key, log in logs:
            for uid, entity, _ in log.events[starts[key].offset : until[key].offset]:
                table = self.settings.table_of(name, entity)
                settled[uid] = settled.get(uid, frozenset()) | {table}

    @staticmethod
    def damaged(file: object) -> object:
        """The claims file with a flipped bit."""
        if not isinstance(file, Claims) or file.damaged:
            return file
        more = {key: Position(at.offset + 2, at.epoch) for key, at in file.finished.items()}
        return replace(file, finished=more, damaged=True)

    @staticmethod
    def remembered(warehouse: Warehouse, pipelines: frozenset[str]) -> tuple[set[Key], set[str]]:
        """Partitions and sources that a newest record, or a claims file of theirs, still knows."""
        keys: set[Key] = set()
        sources: set[str] = set()
        for table in warehouse.tables.values():
            for record in newest_records(table).values():
                keys.update(record.end, record.origin)
                sources.update(record.sources)
        for pipeline in pipelines:
            claims = warehouse.files.get(f"claims/{pipeline}")
            if claims is not None and not claims.damaged:
                keys.update(claims.finished)
                sources.update(claims.sources)
        return keys, sources

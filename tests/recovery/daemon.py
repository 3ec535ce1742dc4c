"""The daemon by the rules of the design: a start, and batches."""

from tests.recovery.broker import Key, Log, Position
from tests.recovery.losses import (
    Loss,
    LostTopic,
    begun_at_end,
    emptied,
    letters_of,
    lost_ranges,
    lost_topics,
    passed_by,
    routed_otherwise,
)
from tests.recovery.memory import furthest, recall
from tests.recovery.tables import DEAD_LETTERS, Letter, Vector
from tests.recovery.world import ReopenError, StoppedError
from tests.recovery.writer import Writer


class Daemon(Writer):
    """One process of a pipeline; `role` names its settings in the world."""

    # The start

    def open(self) -> None:
        """Read the tables, judge what the logs have lost, found sources that are new."""
        world, settings = self.world, self.settings
        self.memory = memory = recall(world, settings)
        self._recalled = frozenset(memory.origin)
        for name in world.topics.keys() & settings.topics:
            memory.topics[world.topics[name].id] = name
        ranges = lost_ranges(world, settings, memory)
        topics = lost_topics(world, settings, memory)
        if settings.policy == "fail":
            self._stop_at_losses(ranges, topics)
        dead_letters = self._letters(ranges, topics)
        founded = self._found_sources()
        if DEAD_LETTERS not in memory.coverage:
            memory.coverage[DEAD_LETTERS] = dict(memory.finished)
            memory.fed[DEAD_LETTERS] = frozenset()
            memory.base.setdefault(DEAD_LETTERS, 0)
            founded = True
        if dead_letters or (founded and self._on("founding-commit")):
            self._accept(ranges, topics, dead_letters)
        for _, key, log in world.logs(settings):
            memory.meet(key, log)
        if memory.met and self._on("met-recorded"):
            self._write_claims()
        world.starts += 1
        self._limit = 1 + world.starts % 4
        self._note_begun()

    def _stop_at_losses(self, ranges: list[Loss], topics: list[LostTopic]) -> None:
        fed = {topic.table for topic in topics if topic.table}
        if self._on("dead-letters-exempt"):
            fed.discard(DEAD_LETTERS)
        if fed:
            raise StoppedError(3, "topic-lost", " ".join(sorted(fed)))
        if ranges:
            raise StoppedError(3, "offsets-lost", str(ranges[0]))

    def _letters(self, ranges: list[Loss], topics: list[LostTopic]) -> list[Letter]:
        """All that is to be reported at this start; `topics` gets those that were given up."""
        memory = self.memory
        gone = sorted(memory.names - memory.coverage.keys())
        memory.names.difference_update(gone)
        dead_letters = [one for table in gone for one in emptied(memory, table, memory.finished)]
        if self._on("overwrite-reported"):
            for table in sorted(memory.overwritten):
                dead_letters += emptied(memory, table, memory.coverage[table])
        rerouted = routed_otherwise(memory) if self._on("routing-recorded") else []
        memory.rerouted = {one.table for one in rerouted if one.table}
        topics += passed_by(self.world, memory, topics)
        return dead_letters + rerouted + letters_of(memory, ranges, topics)

    def _found_sources(self) -> bool:
        """Apply the start modes of sources that nothing knows."""
        world, memory = self.world, self.memory
        known = {key.topic_id for key in memory.finished} | memory.retired
        known.update(key.topic_id for vector in memory.coverage.values() for key in vector)
        names = {memory.topics.get(one) for one in known}
        unknown = [source for source in self.settings.sources if source.name not in memory.sources]
        memory.sources.update(one.name for one in unknown)
        # A source that was renamed has topics that are known, or whose predecessors are.
        new = {name: one for one in unknown if not names & one.topics for name in one.topics}
        for name, key, log in world.logs(self.settings):
            if name in new:
                begin = log.end if new[name].latest else log.first
                memory.finished[key] = Position(begin, log.epoch)
                if new[name].name not in self._warehouse().founded:
                    self._decided[key] = begin
                if begin:
                    memory.origin[key] = memory.finished[key]
        return bool(new)

    def _accept(
        self, ranges: list[Loss], topics: list[LostTopic], dead_letters: list[Letter]
    ) -> None:
        """Write what is lost to the dead letters, then move each table that lacks it past it."""
        memory = self.memory
        if self.settings.policy == "latest":
            for key, log in begun_at_end(self.world, self.settings, memory, topics).items():
                memory.origin[key] = memory.finished[key] = Position(log.end, log.epoch)
                self._decided[key] = log.end
        past = self._move_past(ranges, topics)
        lacking = {table for table, _ in past if table} | memory.overwritten | memory.rerouted
        everywhere = any(table is None for table, _ in past) and self._on("accepted-everywhere")
        if topics or everywhere or not self._on("losses-by-table"):
            lacking.update(memory.coverage)  # each record says that its table was brought past it
        order = [DEAD_LETTERS, *sorted(lacking - {DEAD_LETTERS})]
        if not self._on("letter-first"):
            order = [*order[1:], DEAD_LETTERS]
        for name in order:
            vector = self._living(memory.coverage[name])
            vector.update({key: at for (table, key), at in past.items() if table == name})
            memory.coverage[name] = vector
            memory.fed[name] = memory.fed[name] - memory.retired
            self._commit(
                name, (), memory.finished, {}, dead_letters if name == DEAD_LETTERS else []
            )
        memory.overwritten.clear()
        memory.rerouted.clear()
        if self._on("claims-after-acceptance"):
            self._write_claims()

    def _move_past(
        self, ranges: list[Loss], topics: list[LostTopic]
    ) -> dict[tuple[str | None, Key], Position]:
        """Positions after what was lost, by table; what is of all tables moves at once."""
        memory = self.memory
        past = {(range_.table, range_.key): range_.position for range_ in ranges}
        for (table, key), at in past.items():
            if table is None:
                memory.finished[key] = at
            if key in memory.origin:
                memory.origin[key] = min(at, memory.origin[key])  # truncated below it
        memory.retired.update(topic.topic_id for topic in topics)
        memory.finished = self._living(memory.finished)
        if not self._on("losses-by-table"):
            past |= {(t, k): at for t in memory.coverage for (_, k), at in past.items()}
        return past

    def _living(self, vector: Vector) -> dict[Key, Position]:
        """A vector without topics that are gone for good."""
        retired = self.memory.retired
        return {key: at for key, at in vector.items() if key.topic_id not in retired}

    # A batch

    def batch(self) -> bool:
        """Read from where the least advanced table is, commit letters, tables, then the claims."""
        memory, settings, starts, until = self.memory, self.settings, {}, {}
        rows: dict[str, list[tuple[Key, int]]] = {}
        logs = list(self.world.logs(settings))
        for name, key, log in logs:
            memory.topics[key.topic_id] = name
            memory.meet(key, log)
            at = self._position(key, log)
            to = min(log.end, at + self._limit)
            starts[key], until[key] = Position(at, log.epoch), Position(to, log.epoch)
            for offset in range(at, to):
                uid, entity, _ = log.events[offset]
                table = settings.table_of(name, entity)
                if table is not None and offset >= memory.covered(table, key).offset:
                    rows.setdefault(table, []).append((key, uid))
        moved = any(starts[key].offset < until[key].offset for key in starts)
        self._check_topics()
        for table in sorted(rows.keys() - memory.coverage.keys()):
            self._create(table)
        for table in sorted(rows, key=lambda row: (row != DEAD_LETTERS, row)):
            self._commit(table, tuple(rows[table]), starts, until, [])
        for table, vector in memory.coverage.items():
            memory.coverage[table] = furthest(vector, until)
        self._note_settled(logs, starts, until)
        memory.finished = furthest(memory.finished, until)
        if moved or (memory.met and self._on("met-recorded")):
            self._write_claims()
            self._note_begun()
        self.world.scratch["checkpoint"] = {key: at.offset for key, at in until.items()}
        return moved

    def _check_topics(self) -> None:
        """Start again if a topic is another one than when it was read: the start judges it."""
        memory = self.memory
        names = {topic.id for topic in self.world.topics.values()}
        selected = self.settings.topics
        lost = {key.topic_id for key in memory.finished} - memory.retired - names
        if self._on("fed-topics") and any(memory.topics.get(one) in selected for one in lost):
            raise ReopenError

    def _position(self, key: Key, log: Log) -> int:
        """Where a partition goes on; ReopenError if its log does not have that offset."""
        memory = self.memory
        known = [memory.covered(table, key) for table in (*memory.coverage, None)]
        if not self._on("absent-is-later"):
            known = [vector[key] for vector in memory.coverage.values() if key in vector]
            known.append(memory.finished[key])
        at = min(one.offset for one in known)
        if not self._on("fresh-checkpoint"):
            checkpoint = self.world.scratch.get("checkpoint", {}).get(key)  # type: ignore[attr-defined]
            if checkpoint is not None and not any(
                vector[key].offset < checkpoint
                for vector in memory.coverage.values()
                if key in vector
            ):
                at = checkpoint
        epochs = self._on("leader-epoch")
        if self._on("planned-losses-reopen"):
            if at < log.first or at > log.end:
                raise ReopenError
            if epochs and any(log.end_of_epoch(one.epoch) < one.offset for one in known):
                raise ReopenError
        return min(max(at, log.first), log.end)

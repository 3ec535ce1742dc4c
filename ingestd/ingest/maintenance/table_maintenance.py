"""What maintenance one table needs, by what the driver has committed to it: no file is looked at.

A compaction tells how full the buckets were when it began; what was appended since is counted on
top of that. The count may be too high when others compact the same table, and then the next
compaction finds less to do and corrects it.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.compaction_options import compaction_options, lookup_rules
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import Place, SortedRuns

_RETRY_SECONDS = 1.0
_MOST_RETRY_SECONDS = 300.0
_MOST_IDLE_SECONDS = 3600.0
_MOST_COMMITS = 256
_PATIENCE_SECONDS = 60.0
_REST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class TableGrowth:
    """A commit as maintenance sees it: the table's schema, its snapshot, new files by bucket."""

    schema: TableSchema
    snapshot_id: int
    files: Mapping[Place, int]


@dataclass(frozen=True, slots=True)
class WorkRules:
    """When the options of a table ask for a compaction, in figures that the driver has.

    `runs` in a bucket, or `new_files` in it since the last look; `stop_runs` (None: never) are
    more than writers should add to. Every `commits_per_full` commits (None: never) all is to be
    compacted. `write_only`: another process does all of it, expiry as well.
    """

    runs: int
    new_files: int | None
    stop_runs: int | None
    commits_per_full: int | None
    write_only: bool


def rules_of(schema: TableSchema) -> WorkRules:
    """The rules of a table; ConfigError names an option that cannot be understood."""
    options = compaction_options(schema)
    commits = honoured.DELTA_COMMITS.of(schema.options) or 0
    write_only = honoured.WRITE_ONLY.of(schema.options)
    if not schema.primary_keys:
        return WorkRules(options.min_file_num, options.min_file_num, None, None, write_only)
    early = (options.full_interval_ms, options.total_size, options.incremental_size)
    new_files = 1 if any(one is not None for one in early) else None
    if options.forces_level_0:
        new_files = options.gentle_runs or 1
    waits = bucket_mode(schema) is BucketMode.POSTPONE
    if waits:
        new_files = 1  # what waits for its bucket cannot be read, and is no run that reads merge
    full = commits > 0 or lookup_rules(schema).full_changelog
    return WorkRules(
        runs=options.trigger,
        new_files=new_files,
        stop_runs=None if waits else options.stop_trigger,
        commits_per_full=max(commits, 1) if full else None,
        write_only=write_only,
    )


@dataclass(frozen=True, slots=True)
class Ended:
    """How a compaction ended: it `changed` something, `left` buckets, was a `full` one."""

    changed: bool = False
    left: bool = False
    full: bool = False


@dataclass(slots=True)
class TableWork:
    """One table; times are seconds of a steady clock.

    `due_since` is None while the triggers ask for nothing; `seen` says whether a compaction has
    looked at the table since the driver started, which it should from `look_at` on in any case.
    `level_0` counts files; it is None before that.
    """

    rules: WorkRules
    schema: TableSchema
    look_at: float
    expires_at: float
    seen: bool = False
    running: bool = False
    due_since: float | None = None
    not_before: float = 0.0
    level_0: int | None = None
    _known: dict[Place, int] = field(default_factory=dict)
    _new: Counter[Place] = field(default_factory=Counter)
    _commits: deque[tuple[int, Mapping[Place, int]]] = field(default_factory=deque)
    _untold: int = 1
    _crowd: int = 0
    _since_full: int = 0
    _failures: int = 0
    _rested_at: float = 0.0
    _idle: int = 0

    @property
    def runs(self) -> int | None:
        """The highest number of sorted runs in a bucket; None as long as `level_0` is."""
        return None if self.level_0 is None else self._crowd

    @property
    def is_over_stop(self) -> bool:
        """Whether a bucket has more sorted runs than writers should add to."""
        stop = self.rules.stop_runs
        return stop is not None and self.runs is not None and self.runs > stop

    def is_due(self, now: float) -> bool:
        """Whether it is to be compacted; after failures it waits."""
        asked = self.due_since is not None or (not self.seen and self.look_at <= now)
        return asked and self.not_before <= now

    @property
    def nears_stop(self) -> bool:
        """Whether ingest, which adds a run with each batch, will soon wait for a compaction.

        With one run less than writers may make it has two batches to end in.
        """
        stop = self.rules.stop_runs
        return stop is not None and self._crowd >= stop - 1

    def is_pressing(self, now: float) -> bool:
        """Whether what is due should not even wait for a stream that is behind.

        It may until a bucket nears the stop trigger, and for no longer than a minute.
        """
        since = self.look_at if self.due_since is None else self.due_since
        return self.nears_stop or now - since >= _PATIENCE_SECONDS

    def rests(self, now: float) -> bool:
        """Whether it was compacted a moment ago, and no one waits to see what is new.

        Small commits follow each other fast: one compaction does for all buckets that they fill.
        """
        return self.rules.new_files is None and now < self._rested_at

    @property
    def wants_full(self) -> bool:
        """Whether the next compaction is one of everything."""
        every = self.rules.commits_per_full
        return every is not None and self._since_full >= every

    def touched(self) -> None:
        """Someone commits to it, so that there will be something to expire."""
        self._idle = 0

    def committed(self, growth: TableGrowth, now: float) -> None:
        """The driver has committed; costs what was committed."""
        if growth.schema is not self.schema:
            self.rules, self.schema = rules_of(growth.schema), growth.schema
        if self.rules.write_only:
            return
        if growth.snapshot_id == 1:
            self._is_new()
        self._remember(growth)
        self._since_full += 1
        self._crowd = max(self._crowd, max(map(self._runs, growth.files), default=0))
        if self.level_0 is not None:
            self.level_0 += sum(growth.files.values())
        if self.due_since is None and self._asks(growth.files):
            self.due_since = now

    def compacted(self, sorted_runs: SortedRuns, how: Ended, now: float) -> None:
        """A compaction has ended."""
        self.seen, self.running, self._failures = True, False, 0
        self._rested_at = now + _REST_SECONDS
        self._untold = 1  # a bucket with a single run is not told
        self._known = dict(sorted_runs.runs)
        seen = sorted_runs.snapshot_id or 0
        while self._commits and self._commits[0][0] <= seen:
            self._new.subtract(self._commits.popleft()[1])
        self._new = +self._new
        self._crowd = max((*self._known.values(), *map(self._runs, self._new)), default=0)
        if how.full and not how.left:
            self._since_full = len(self._commits)
        if self.schema.primary_keys:
            self.level_0 = sorted_runs.level_0 + sum(self._new.values())
        crowded = how.changed and (self.runs or 0) > self.rules.runs
        self.due_since = now if how.left or crowded or self._asks(self._new) else None

    def failed(self, now: float) -> None:
        """A compaction did not end well: it is tried again, later each time."""
        self.running = False
        wait = min(_RETRY_SECONDS * 2.0 ** min(self._failures, 30), _MOST_RETRY_SECONDS)
        self._failures += 1
        self.not_before = now + wait
        self.due_since = now if self.due_since is None else self.due_since

    def expired(self, now: float, interval: float) -> None:
        """Expiry has run; a table that no one commits to is looked at less and less."""
        self.running = False
        wait = interval * 2.0 ** min(self._idle, 30)
        self.expires_at = now + max(interval, min(wait, _MOST_IDLE_SECONDS))
        self._idle += 1

    def _is_new(self) -> None:
        """Nothing was there before the first commit: there is nothing to look for."""
        self.seen, self._untold = True, 0
        if self.schema.primary_keys:
            self.level_0 = 0

    def _remember(self, growth: TableGrowth) -> None:
        """Add up; of more commits than are worth telling apart the oldest become one."""
        self._new.update(growth.files)
        self._commits.append((growth.snapshot_id, growth.files))
        if len(self._commits) > _MOST_COMMITS:
            _, oldest = self._commits.popleft()
            snapshot_id, files = self._commits.popleft()
            together = oldest if isinstance(oldest, Counter) else Counter(oldest)
            together.update(files)
            self._commits.appendleft((snapshot_id, together))

    def _runs(self, place: Place) -> int:
        return self._known.get(place, self._untold) + self._new[place]

    def _asks(self, places: Mapping[Place, int]) -> bool:
        """Whether what is new in these buckets reaches a trigger."""
        rules = self.rules
        if self.wants_full or not places:
            return self.wants_full
        most_new = max(self._new[place] for place in places)
        if rules.new_files is not None and most_new >= rules.new_files:
            return True
        return bool(self.schema.primary_keys) and max(map(self._runs, places)) >= rules.runs

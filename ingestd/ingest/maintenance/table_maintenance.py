"""Derive the maintenance that a table needs from the driver's commits to it, without I/O.

A compaction reports the sorted runs of the buckets when it started; files appended since then are
added to these counts. A count may be too high if other processes compact the same table; the next
compaction corrects it.
Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.compaction_options import compaction_options, lookup_rules
from ingestd.paimon.spec.manifest import BucketKey
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

_RETRY_SECONDS = 1.0
_MOST_RETRY_SECONDS = 300.0
_MOST_IDLE_SECONDS = 3600.0
_MOST_COMMITS = 256
_PATIENCE_SECONDS = 60.0
_REST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class TableGrowth:
    """What maintenance needs to know about a commit.

    `schema` is the schema of the table, and `files` counts the new files by bucket.
    """

    schema: TableSchema
    snapshot_id: int
    files: Mapping[BucketKey, int]


@dataclass(frozen=True, slots=True)
class WorkRules:
    """The conditions under which a table needs a compaction, derived from its options.

    A compaction is due when a bucket has `runs` sorted runs, or `new_files` new files since the
    last compaction (None: files are not counted). Writers should wait if a bucket has more than
    `stop_runs` runs (None: no limit). A full compaction is due every `commits_per_full` commits
    (None: never). If `write_only`, another process does all maintenance, including expiry.
    """

    runs: int
    new_files: int | None
    stop_runs: int | None
    commits_per_full: int | None
    write_only: bool


def rules_of(schema: TableSchema) -> WorkRules:
    """Derive the compaction rules of a table from its options.

    Raises ConfigError, which names the option, if an option is invalid.
    """
    options = compaction_options(schema)
    commits = honoured.DELTA_COMMITS.of(schema.options) or 0
    write_only = honoured.WRITE_ONLY.of(schema.options)
    if not schema.primary_keys:
        return WorkRules(options.min_file_num, options.min_file_num, None, None, write_only)
    early = (options.full_interval_ms, options.total_size, options.incremental_size)
    new_files = 1 if any(value is not None for value in early) else None
    if options.forces_level_0:
        new_files = options.min_level_0_runs
    waits = bucket_mode(schema) is BucketMode.POSTPONE
    if waits:
        new_files = 1  # files in the postponed bucket cannot be read, and are not sorted runs
    full = commits > 0 or lookup_rules(schema).full_changelog
    return WorkRules(
        runs=options.trigger,
        new_files=new_files,
        stop_runs=None if waits else options.stop_trigger,
        commits_per_full=max(commits, 1) if full else None,
        write_only=write_only,
    )


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """The outcome of a compaction: whether it changed the table, and whether it was full.

    If `left`, some buckets remain for the next compaction.
    """

    changed: bool = False
    left: bool = False
    full: bool = False


@dataclass(slots=True)
class _BucketRuns:
    """The sorted runs of the buckets of a table: those of the last compaction, and newer files.

    `reported` are the runs of buckets that the compaction reported; all others had `unreported`
    runs. `new` counts the files of the newer `commits` by bucket, and `most` is the largest number
    of runs in a bucket. `examined` is whether a compaction has examined the table since the driver
    started, or the table was empty before its first commit. `level_0` is as in `TableWork`.
    """

    examined: bool = False
    level_0: int | None = None
    most: int = 0
    reported: Mapping[BucketKey, int] = field(default_factory=dict)
    unreported: int = 1
    new: Counter[BucketKey] = field(default_factory=Counter)
    commits: deque[tuple[int, Mapping[BucketKey, int]]] = field(default_factory=deque)

    def of(self, bucket: BucketKey) -> int:
        """Return the number of sorted runs of a bucket."""
        return self.reported.get(bucket, self.unreported) + self.new[bucket]

    def add(self, growth: TableGrowth) -> None:
        """Add the files of a commit. If too many are stored, the two oldest commits are merged."""
        self.new.update(growth.files)
        self.commits.append((growth.snapshot_id, growth.files))
        if len(self.commits) > _MOST_COMMITS:
            _, oldest = self.commits.popleft()
            snapshot_id, files = self.commits.popleft()
            together = oldest if isinstance(oldest, Counter) else Counter(oldest)
            together.update(files)
            self.commits.appendleft((snapshot_id, together))
        self.most = max(self.most, max(map(self.of, growth.files), default=0))
        if self.level_0 is not None:
            self.level_0 += sum(growth.files.values())

    def compacted(self, sorted_runs: SortedRuns) -> None:
        """Take the runs that a compaction has reported, and forget the commits that it covers."""
        self.examined = True
        self.unreported = 1  # a bucket with a single run is not reported
        self.reported = sorted_runs.runs
        covered_id = sorted_runs.snapshot_id or 0
        while self.commits and self.commits[0][0] <= covered_id:
            self.new.subtract(self.commits.popleft()[1])
        self.new = +self.new
        self.most = max((*self.reported.values(), *map(self.of, self.new)), default=0)


@dataclass(slots=True)
class TableWork:
    """The maintenance state of one table; times are seconds of a monotonic clock.

    `running` states that a job runs. The next expiry is due at `expires_at`, and no compaction
    starts before `not_before`. `due_since` is None while no trigger is reached. Until the table is
    examined, a compaction is due at `first_due_at` in any case.
    """

    rules: WorkRules
    schema: TableSchema
    first_due_at: float
    expires_at: float
    running: bool = False
    due_since: float | None = None
    not_before: float = 0.0
    _runs: _BucketRuns = field(default_factory=_BucketRuns)
    _since_full: int = 0
    _failures: int = 0
    _rested_at: float = 0.0
    _idle: int = 0

    @property
    def level_0(self) -> int | None:
        """The number of level-0 files; None until the table is examined, and without a key."""
        return self._runs.level_0

    @property
    def runs(self) -> int | None:
        """The largest number of sorted runs in a bucket, or None while `level_0` is None."""
        return None if self.level_0 is None else self._runs.most

    @property
    def is_over_stop(self) -> bool:
        """Whether a bucket has more sorted runs than `rules.stop_runs`: writers should wait.

        False if `stop_runs` is None, or while the number of runs is unknown.
        """
        stop = self.rules.stop_runs
        return stop is not None and self.runs is not None and self.runs > stop

    def is_due(self, now: float) -> bool:
        """Return whether a compaction is due, and not delayed by an earlier failure."""
        asked = self.due_since is not None or (not self._runs.examined and self.first_due_at <= now)
        return asked and self.not_before <= now

    @property
    def is_near_stop(self) -> bool:
        """Whether a bucket has `rules.stop_runs` - 1 sorted runs or more; False without a limit.

        Each batch can add a run to a bucket, and writers wait once a bucket has more runs than
        `stop_runs`: a compaction has to end within two batches.
        """
        stop = self.rules.stop_runs
        return stop is not None and self._runs.most >= stop - 1

    def is_pressing(self, now: float) -> bool:
        """Return whether a compaction that is due should not wait for the end of a backlog.

        The result is true if the compaction has been due for a minute, or if `is_near_stop`.
        """
        since = self.first_due_at if self.due_since is None else self.due_since
        return self.is_near_stop or now - since >= _PATIENCE_SECONDS

    def is_pausing(self, now: float) -> bool:
        """Return whether the table was compacted in the last two seconds.

        Small commits arrive quickly, so one compaction after a pause handles the buckets of several
        commits. Returns False if new files trigger the compactions of the table.
        """
        return self.rules.new_files is None and now < self._rested_at

    @property
    def is_full_due(self) -> bool:
        """Whether the next compaction is a full compaction."""
        every = self.rules.commits_per_full
        return every is not None and self._since_full >= every

    def touched(self) -> None:
        """Record that expiry will have work, because the table has a new commit."""
        self._idle = 0

    def committed(self, growth: TableGrowth, now: float) -> None:
        """Record a commit of the driver. The cost is proportional to the buckets of the commit.

        Raises ConfigError, which names the option, if the schema has changed and an option is
        invalid.
        """
        if growth.schema is not self.schema:
            self.rules, self.schema = rules_of(growth.schema), growth.schema
        if self.rules.write_only:
            return
        commits = self._runs.commits
        if commits and growth.snapshot_id <= commits[-1][0]:
            # The table was rolled back, or created again; its ids start below those of the commits.
            self._runs = _BucketRuns()
        if growth.snapshot_id == 1:  # the table was empty
            level_0 = 0 if self.schema.primary_keys else None
            self._runs = _BucketRuns(examined=True, level_0=level_0, unreported=0)
        self._runs.add(growth)
        self._since_full += 1
        if self.due_since is None and self._asks(growth.files):
            self.due_since = now

    def compacted(self, sorted_runs: SortedRuns, outcome: CompactionOutcome, now: float) -> None:
        """Record the result of a compaction, and derive when the next one is due."""
        self.running, self._failures = False, 0
        self._rested_at = now + _REST_SECONDS
        runs = self._runs
        runs.compacted(sorted_runs)
        if outcome.full and not outcome.left:
            self._since_full = len(runs.commits)
        if self.schema.primary_keys:
            runs.level_0 = sorted_runs.level_0 + sum(runs.new.values())
        crowded = outcome.changed and (self.runs or 0) > self.rules.runs
        self.due_since = now if outcome.left or crowded or self._asks(runs.new) else None

    def failed(self, now: float) -> None:
        """Record a failed compaction.

        The delay before the retry doubles with each failure, from one second to five minutes.
        """
        self.running = False
        wait = min(_RETRY_SECONDS * 2.0 ** min(self._failures, 30), _MOST_RETRY_SECONDS)
        self._failures += 1
        self.not_before = now + wait
        self.due_since = now if self.due_since is None else self.due_since

    def expired(self, now: float, interval: float) -> None:
        """Record an expiry at the time `now`, and set the time of the next expiry.

        The next expiry is due after `interval` seconds. While the table has no commits, this delay
        doubles with each expiry, to at most an hour, or `interval` if that is longer.
        """
        self.running = False
        wait = interval * 2.0 ** min(self._idle, 30)
        self.expires_at = now + max(interval, min(wait, _MOST_IDLE_SECONDS))
        self._idle += 1

    def _asks(self, buckets: Mapping[BucketKey, int]) -> bool:
        """Return whether the new files of these buckets reach a trigger."""
        rules = self.rules
        if self.is_full_due or not buckets:
            return self.is_full_due
        most_new = max(self._runs.new[bucket] for bucket in buckets)
        if rules.new_files is not None and most_new >= rules.new_files:
            return True
        return bool(self.schema.primary_keys) and max(map(self._runs.of, buckets)) >= rules.runs

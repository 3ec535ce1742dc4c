"""Read the options of a table that control its compactions.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction-options
"""

from dataclasses import dataclass

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import Options
from ingestd.paimon.spec.table_schema import TableSchema

_HOURS = 24


@dataclass(frozen=True, slots=True)
class OffPeak:
    """Off-peak hours from `start` (inclusive) to `end` (exclusive).

    `ratio` is the size ratio (percent) that applies in these hours. The hours are from 0 to 23; the
    range may include midnight.
    """

    start: int
    end: int
    ratio: int

    def holds(self, hour: int) -> bool:
        """Return whether an hour of the day (0 to 23) is off-peak."""
        if self.start <= self.end:
            return self.start <= hour < self.end
        return hour >= self.start or hour < self.end


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """The compaction options of a table; sizes in bytes, times in milliseconds, None if not set.

    A compaction starts at `trigger` sorted runs; writers should wait above `stop_trigger`. It takes
    all runs if the newer runs exceed `max_size_amplification` percent of the oldest run, else the
    newest runs, up to a run that is more than `size_ratio` percent larger than their sum.
    Regardless of `trigger`, all runs are compacted if the last full compaction is older than
    `full_interval_ms`, if the bucket is smaller than `total_size`, or if the runs outside the top
    level exceed `incremental_size`.

    With `forces_level_0`, level 0 must be emptied, but only once it has `min_level_0_runs` files.
    With `rewrites_all`, full compactions rewrite every file. For append tables: `min_file_num` is
    the number of files that are joined, `open_file_cost` is added to the size of each file when
    files are grouped, and a file is rewritten if more than the share `delete_ratio` of its rows is
    deleted.
    """

    trigger: int
    stop_trigger: int
    num_levels: int
    max_size_amplification: int
    size_ratio: int
    off_peak: OffPeak | None
    full_interval_ms: int | None
    total_size: int | None
    incremental_size: int | None
    forces_level_0: bool
    min_level_0_runs: int
    rewrites_all: bool
    min_file_num: int
    delete_ratio: float
    open_file_cost: int


@dataclass(frozen=True, slots=True)
class LookupRules:
    """The purposes for which a compaction looks up the previous row of a key in higher levels.

    `needed`: a compaction looks up rows at all. `vectors`: it deletes the older row by a deletion
    vector. `changelog`: it writes the changelog. `full_changelog`: only compactions into the top
    level write the changelog, by comparison with the older rows in that level. `deduplicates`: no
    change is written for a row that differs from the older row at most in the columns `ignored`.
    """

    needed: bool
    vectors: bool
    changelog: bool
    full_changelog: bool
    deduplicates: bool
    ignored: tuple[str, ...]


def compaction_options(schema: TableSchema) -> CompactionOptions:
    """Return the compaction options of a table.

    Raises ConfigError for an invalid value, UnsupportedError if the merge engine or the changelog
    producer excludes deletion vectors.
    """
    options = schema.options
    trigger = honoured.COMPACTION_TRIGGER.of(options)
    levels = num_levels(options)
    if levels < 2:
        raise ConfigError(f"option 'num-levels' = '{levels}': use at least 2 levels")
    needed, stop = lookup_rules(schema).needed, honoured.STOP_TRIGGER.of(options)
    return CompactionOptions(
        trigger=trigger,
        stop_trigger=max(trigger, trigger + 3 if stop is None else stop),
        num_levels=levels,
        max_size_amplification=honoured.SIZE_AMPLIFICATION.of(options),
        size_ratio=honoured.SIZE_RATIO.of(options),
        off_peak=_off_peak(options),
        full_interval_ms=honoured.OPTIMIZATION_INTERVAL.of(options),
        total_size=honoured.TOTAL_SIZE_THRESHOLD.of(options),
        incremental_size=honoured.INCREMENTAL_SIZE_THRESHOLD.of(options),
        forces_level_0=needed or honoured.FORCE_UP_LEVEL_0.of(options),
        min_level_0_runs=_min_level_0_runs(options, trigger) if needed else 1,
        rewrites_all=honoured.FORCE_REWRITE.of(options),
        min_file_num=honoured.COMPACTION_MIN_FILES.of(options),
        delete_ratio=honoured.DELETE_RATIO.of(options),
        open_file_cost=honoured.OPEN_FILE_COST.of(options),
    )


def num_levels(options: Options) -> int:
    """Return the number of levels of a bucket, by default the compaction trigger plus 1.

    Raises ConfigError for an invalid option value.
    """
    levels = honoured.NUM_LEVELS.of(options)
    return honoured.COMPACTION_TRIGGER.of(options) + 1 if levels is None else levels


def lookup_rules(schema: TableSchema) -> LookupRules:
    """Return the purposes for which compactions of a table look up rows in higher levels.

    Raises UnsupportedError if the merge engine or the changelog producer excludes deletion vectors,
    ConfigError for an invalid option value.
    """
    options = schema.options
    producer = honoured.CHANGELOG_PRODUCER.of(options)
    vectors = bool(schema.primary_keys) and honoured.DELETION_VECTORS.of(options)
    first_row = honoured.MERGE_ENGINE.of(options) == "first-row"
    if vectors and (first_row or producer == "full-compaction"):
        other_option = (
            "'merge-engine' = 'first-row'" if first_row else f"'changelog-producer' = '{producer}'"
        )
        raise UnsupportedError(
            f"'deletion-vectors.enabled' = 'true' cannot be used with {other_option}"
        )
    forced = honoured.FORCE_LOOKUP.of(options)
    return LookupRules(
        needed=bool(schema.primary_keys)
        and producer != "full-compaction"
        and (vectors or first_row or forced or producer == "lookup"),
        vectors=vectors,
        changelog=producer == "lookup",
        full_changelog=producer == "full-compaction",
        deduplicates=honoured.ROW_DEDUPLICATE.of(options),
        ignored=honoured.DEDUPLICATE_IGNORE.of(options),
    )


def _min_level_0_runs(options: Options, trigger: int) -> int:
    mode = honoured.LOOKUP_COMPACT.of(options)
    if mode not in ("radical", "gentle"):
        raise ConfigError(f"option 'lookup-compact' = '{mode}': use 'radical' or 'gentle'")
    if mode == "radical":
        return 1
    interval = honoured.LOOKUP_COMPACT_INTERVAL.of(options)
    return max(trigger, 2 * trigger if interval is None else interval)


def _off_peak(options: Options) -> OffPeak | None:
    start = honoured.OFFPEAK_START.of(options)
    end = honoured.OFFPEAK_END.of(options)
    if start == -1 or end == -1 or start == end:
        return None
    if not (0 <= start < _HOURS and 0 <= end < _HOURS):
        raise ConfigError(
            f"option 'compaction.offpeak.start.hour' = '{start}', 'compaction.offpeak.end.hour' = "
            f"'{end}': use hours from 0 to 23"
        )
    return OffPeak(start, end, honoured.OFFPEAK_RATIO.of(options))

"""Universal compaction: pick sorted runs of a bucket by their sizes and levels.

Runs are ordered from the newest to the oldest: each file of level 0 is a run, and each higher level
is a run. The picked runs are always the newest runs, so that an older row is never in a lower level
than a newer row of its key. No files are read here.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#number-of-sorted-runs-to-trigger-compaction
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ingestd.paimon.spec.compaction_options import CompactionOptions

Reason = Literal[
    "interval", "total-size", "incremental-size", "amplification", "ratio", "file-num",
    "level-0", "full",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunSize:
    """The level of a sorted run, and its size in bytes."""

    level: int
    size: int


@dataclass(frozen=True, slots=True)
class CompactionPick:
    """The newest `count` runs, to be compacted into `output_level`, and the reason."""

    count: int
    output_level: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class PlanningTime:
    """The time for which a compaction of a bucket is planned.

    `now_ms` is in milliseconds of the epoch, `hour` the hour of the day in UTC, and `last_full_ms`
    the time of the last full compaction of the bucket (None: no full compaction yet).
    """

    now_ms: int
    hour: int
    last_full_ms: int | None = None


def pick_runs(
    runs: Sequence[RunSize], max_level: int, options: CompactionOptions, moment: PlanningTime
) -> CompactionPick | None:
    """Pick the runs to compact by the first trigger that is due; return None if none is due.

    `runs` are ordered from the newest to the oldest, `max_level` is the top level, and `moment` is
    the time of planning. If the options require that level 0 is emptied, as with deletion vectors,
    its files are compacted when no other trigger is due, but only if there are at least
    `options.min_level_0_runs` of them.
    """
    choice = _choose_universal(runs, max_level, options, moment)
    if choice is not None or not options.forces_level_0:
        return choice
    level_0_files = sum(1 for run in runs if run.level == 0)
    if level_0_files < options.min_level_0_runs:
        return None
    return _extended(runs, max_level, options, moment, level_0_files, "level-0")


def pick_full(runs: Sequence[RunSize], max_level: int) -> CompactionPick | None:
    """Pick all runs, to be compacted into the top level.

    Returns None without runs, and if the only run is in the top level.
    """
    if not runs or (len(runs) == 1 and runs[0].level == max_level):
        return None
    return CompactionPick(len(runs), max_level, "full")


def _choose_universal(
    runs: Sequence[RunSize], max_level: int, options: CompactionOptions, moment: PlanningTime
) -> CompactionPick | None:
    early = _prestart_full(runs, max_level, options, moment)
    if early is not None:
        return CompactionPick(len(runs), max_level, early)
    if len(runs) >= options.trigger and runs:
        newer = sum(run.size for run in runs[:-1])
        if newer * 100 > options.max_size_amplification * runs[-1].size:
            return CompactionPick(len(runs), max_level, "amplification")
        selection = _extended(runs, max_level, options, moment, 1, "ratio")
        if selection is not None:
            return selection
    if len(runs) > options.trigger:
        count = len(runs) - options.trigger + 1
        return _extended(runs, max_level, options, moment, count, "file-num")
    return None


def _prestart_full(
    runs: Sequence[RunSize], max_level: int, options: CompactionOptions, moment: PlanningTime
) -> Reason | None:
    """Return the reason for a full compaction that precedes all other triggers, or None."""
    if len(runs) <= 1:
        return None
    interval, last = options.full_interval_ms, moment.last_full_ms
    if interval is not None and (last is None or moment.now_ms - last > interval):
        return "interval"
    if options.total_size is not None and sum(run.size for run in runs) < options.total_size:
        return "total-size"
    newer = sum(run.size for run in runs if run.level != max_level)
    if options.incremental_size is not None and newer > options.incremental_size:
        return "incremental-size"
    return None


def _extended(
    runs: Sequence[RunSize],
    max_level: int,
    options: CompactionOptions,
    moment: PlanningTime,
    count: int,
    reason: Reason,
) -> CompactionPick | None:
    """Pick the newest `count` runs, and following runs that are not much larger than their sum.

    A run is added if it is at most `size_ratio` percent (more in off-peak hours) larger than the
    sum of the runs before it. Returns None for a single run, unless level 0 has to be emptied.
    """
    ratio = options.size_ratio
    if options.off_peak is not None and options.off_peak.holds(moment.hour):
        ratio += options.off_peak.ratio
    size = sum(run.size for run in runs[:count])
    for run in runs[count:]:
        if size * (100.0 + ratio) / 100.0 < run.size:
            break
        size += run.size
        count += 1
    if count <= 1 and reason != "level-0":
        return None
    return _placed(runs, max_level, count, reason)


def _placed(runs: Sequence[RunSize], max_level: int, count: int, reason: Reason) -> CompactionPick:
    """Pick the newest `count` runs, with the level before that of the next run as the output.

    If no run is left, the output is the highest level. The output is never level 0: if it were,
    the following runs are picked, too, up to the first run of a higher level.
    """
    output = max_level if count == len(runs) else max(0, runs[count].level - 1)
    while output == 0 and count < len(runs):
        output = runs[count].level
        count += 1
    return CompactionPick(count, max_level if count == len(runs) else output, reason)

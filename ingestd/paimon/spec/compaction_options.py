"""What the options of a table say about compaction: when, which files, and what comes of it.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.merge_rules import listed, merge_engine
from ingestd.paimon.spec.option_values import (
    bool_option,
    int_option,
    millis_option,
    optional_int_option,
    size_option,
)
from ingestd.paimon.spec.table_schema import TableSchema

_MB = 1024 * 1024
_HOURS = 24


@dataclass(frozen=True, slots=True)
class OffPeak:
    """Hours of the day, from `start` up to `end` (perhaps past midnight), with another ratio."""

    start: int
    end: int
    ratio: int

    def holds(self, hour: int) -> bool:
        """Whether an hour of the day is one of them."""
        if self.start <= self.end:
            return self.start <= hour < self.end
        return hour >= self.start or hour < self.end


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """The options of compaction; sizes in bytes, times in milliseconds, None: not given.

    `trigger` sorted runs start a compaction and above `stop_trigger` writers should wait. The
    amplification and the ratio are percentages. `forces_level_0`: no file may stay in level 0,
    unless `gentle_runs` of them are waited for.
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
    gentle_runs: int | None
    rewrites_all: bool
    min_file_num: int
    delete_ratio: float
    open_file_cost: int


@dataclass(frozen=True, slots=True)
class LookupRules:
    """Whether compaction asks the higher levels what a key had before, and what for.

    `vectors`: to delete the older row by a deletion vector. `changelog`: to tell what changed.
    `full_changelog`: the changes are those of the top level. `deduplicates`: no change is told
    of a row that is as before in all columns but the `ignored` ones.
    """

    needed: bool
    vectors: bool
    changelog: bool
    full_changelog: bool
    deduplicates: bool
    ignored: tuple[str, ...]


def compaction_options(schema: TableSchema) -> CompactionOptions:
    """The options of a table; ConfigError names one whose value cannot be understood."""
    options = schema.options
    number, flag = partial(int_option, options), partial(bool_option, options)
    trigger = number("num-sorted-run.compaction-trigger", 5)
    levels = number("num-levels", trigger + 1)
    if levels < 2:
        raise ConfigError(f"option 'num-levels' = '{levels}': use at least 2 levels")
    needed = lookup_rules(schema).needed
    return CompactionOptions(
        trigger=trigger,
        stop_trigger=max(trigger, number("num-sorted-run.stop-trigger", trigger + 3)),
        num_levels=levels,
        max_size_amplification=number("compaction.max-size-amplification-percent", 200),
        size_ratio=number("compaction.size-ratio", 1),
        off_peak=_off_peak(options),
        full_interval_ms=_millis(options, "compaction.optimization-interval"),
        total_size=_size(options, "compaction.total-size-threshold"),
        incremental_size=_size(options, "compaction.incremental-size-threshold"),
        forces_level_0=needed or flag("compaction.force-up-level-0", False),
        gentle_runs=_gentle_runs(options, trigger) if needed else None,
        rewrites_all=flag("compaction.force-rewrite-all-files", False),
        min_file_num=number("compaction.min.file-num", 5),
        delete_ratio=_delete_ratio(options),
        open_file_cost=size_option(options, "source.split.open-file-cost", 4 * _MB),
    )


def lookup_rules(schema: TableSchema) -> LookupRules:
    """Why a table's compaction looks at higher levels.

    UnsupportedError for producers that compaction cannot serve together with the rest.
    """
    options = schema.options
    producer = options.get("changelog-producer", "none").strip().lower()
    vectors = bool(schema.primary_keys) and bool_option(options, "deletion-vectors.enabled", False)
    first_row = merge_engine(options) == "first-row"
    if vectors and (first_row or producer == "full-compaction"):
        what = (
            "'merge-engine' = 'first-row'" if first_row else f"'changelog-producer' = '{producer}'"
        )
        raise UnsupportedError(f"'deletion-vectors.enabled' = 'true' cannot be used with {what}")
    forced = bool_option(options, "force-lookup", False)
    return LookupRules(
        needed=bool(schema.primary_keys)
        and producer != "full-compaction"
        and (vectors or first_row or forced or producer == "lookup"),
        vectors=vectors,
        changelog=producer == "lookup",
        full_changelog=producer == "full-compaction",
        deduplicates=bool_option(options, "changelog-producer.row-deduplicate", False),
        ignored=listed(options.get("changelog-producer.row-deduplicate-ignore-fields", "")),
    )


def _gentle_runs(options: Mapping[str, str], trigger: int) -> int | None:
    mode = options.get("lookup-compact", "radical").strip().lower()
    if mode not in ("radical", "gentle"):
        raise ConfigError(f"option 'lookup-compact' = '{mode}': use 'radical' or 'gentle'")
    if mode == "radical":
        return None
    return max(trigger, int_option(options, "lookup-compact.max-interval", 2 * trigger))


def _off_peak(options: Mapping[str, str]) -> OffPeak | None:
    start = int_option(options, "compaction.offpeak.start.hour", -1)
    end = int_option(options, "compaction.offpeak.end.hour", -1)
    if start == -1 or end == -1 or start == end:
        return None
    if not (0 <= start < _HOURS and 0 <= end < _HOURS):
        raise ConfigError(
            f"option 'compaction.offpeak.start.hour' = '{start}', 'compaction.offpeak.end.hour' = "
            f"'{end}': use hours from 0 to 23"
        )
    return OffPeak(start, end, optional_int_option(options, "compaction.offpeak-ratio") or 0)


def _millis(options: Mapping[str, str], name: str) -> int | None:
    return millis_option(options, name, 0) if name in options else None


def _size(options: Mapping[str, str], name: str) -> int | None:
    return size_option(options, name, 0) if name in options else None


def _delete_ratio(options: Mapping[str, str]) -> float:
    text = options.get("compaction.delete-ratio-threshold", "0.2")
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(
            f"option 'compaction.delete-ratio-threshold' = '{text}': use a number like 0.2"
        ) from error

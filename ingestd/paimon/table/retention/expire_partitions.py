"""Expire partitions whose time, or last change, is older than the retention time.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-partitions/#expiring-partitions

The partitions are removed by OVERWRITE snapshots, like dropped partitions: older snapshots contain
them until these snapshots expire.
"""

import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from ingestd.errors import CommitConflictError, ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.paths import java_text
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.commit.overwrite import (
    ReplacedPartition,
    drop_partitions,
    replaced_partitions,
)
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot

EXPIRATION_TIME = honoured.PARTITION_EXPIRATION.name
_VALUES, _UPDATES = "values-time", "update-time"
_LOG = logging.getLogger(__name__)
FORMATTER = honoured.PARTITION_FORMATTER.name
_DEFAULT = re.compile(
    r"(?P<y>-?\d{1,10})-(?P<M>\d{1,2})-(?P<d>\d{1,2})"
    r"(?: (?P<H>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<S>\d{1,9}))?)?"
)
_YEAR = {"y", "u"}
_MONTHS = 12


@dataclass(frozen=True, slots=True)
class ExpiredPartitions:
    """Expired partitions, and the ids of the snapshots that removed them (none in a dry run)."""

    partitions: tuple[ReplacedPartition, ...] = ()
    snapshots: tuple[int, ...] = ()


def expire_partitions(
    table: FileStoreTable, options: Mapping[str, str], now_ms: int, *, dry_run: bool = False
) -> ExpiredPartitions:
    """Drop expired partitions; do nothing without the option `partition.expiration-time`.

    `options` are the options of the table. At most `partition.expiration-max-num` partitions are
    dropped per call, ordered by name, with `partition.expiration-batch-size` partitions per
    snapshot (default: all in one snapshot). With `dry_run`, they are only returned. `now_ms` is in
    milliseconds of the epoch. Raises ConfigError or UnsupportedError for an option that is invalid
    or not supported, and CommitConflictError, CommitUnknownError or LockUnavailableError if a
    commit fails.
    """
    if EXPIRATION_TIME not in options or not table.schema.partition_keys:
        return ExpiredPartitions()
    snapshot = latest_snapshot(table.io, table.paths)
    expired = _expired(table, snapshot, options, now_ms)[: honoured.PARTITION_MAX.of(options)]
    parts = tuple(replaced_partitions(table, snapshot, frozenset(expired))) if expired else ()
    if dry_run or not parts:
        return ExpiredPartitions(parts)
    batch = honoured.PARTITION_BATCH.of(options) or len(expired)
    dropped: list[bytes] = []
    snapshot_ids = []
    for start in range(0, len(expired), batch):
        together = expired[start : start + batch]
        result = _drop(table, snapshot, together, options, now_ms)
        if result is not None and result.snapshot is not None:
            dropped += together
            snapshot_ids.append(result.snapshot.id)
    parts = tuple(part for part in parts if part.partition in dropped)
    return ExpiredPartitions(parts, tuple(snapshot_ids))


def _drop(
    table: FileStoreTable,
    snapshot: Snapshot | None,
    partitions: Sequence[bytes],
    options: Mapping[str, str],
    now_ms: int,
) -> CommitResult | None:
    """Drop partitions that have expired by `snapshot`.

    By the strategy `update-time`, a partition that was changed since has not expired: None is then
    returned, and the next expiry decides again.
    """
    specs = [_spec(table, partition) for partition in partitions]
    if honoured.PARTITION_STRATEGY.of(options) != _UPDATES:
        return drop_partitions(table, specs, now_ms=now_ms)
    live = live_files(table, snapshot, partition_filter=frozenset(partitions))
    files = frozenset(entry.identifier for entry in live)
    try:
        return drop_partitions(table, specs, now_ms=now_ms, files=files)
    except CommitConflictError as error:
        context = {"table": table.name, "error": error.message}
        _LOG.warning("partitions_changed_meanwhile", extra={"ctx": context})
        return None


def _expired(
    table: FileStoreTable, snapshot: Snapshot | None, options: Mapping[str, str], now_ms: int
) -> list[bytes]:
    """Return the expired partitions of a snapshot as serialized rows, ordered by name."""
    strategy = honoured.PARTITION_STRATEGY.of(options)
    age = honoured.PARTITION_EXPIRATION.of(options) or 0
    if age <= 0:
        raise ConfigError(f"option '{EXPIRATION_TIME}' = '{options[EXPIRATION_TIME]}': no time")
    if strategy == _VALUES:
        old_partitions = set(_old_by_value(table, snapshot, options, now_ms - age))
    elif strategy == _UPDATES:
        old_partitions = set(_old_by_change(table, snapshot, now_ms - age))
    else:
        raise UnsupportedError(
            f"option '{honoured.PARTITION_STRATEGY.name}' = '{strategy}' is not supported; "
            f"supported: {_VALUES}, {_UPDATES}"
        )
    default = table.options.partition_default_name
    return sorted(
        old_partitions,
        key=lambda partition: ",".join(text or default for text in _texts(table, partition)),
    )


def _old_by_value(
    table: FileStoreTable, snapshot: Snapshot | None, options: Mapping[str, str], before_ms: int
) -> Iterator[bytes]:
    # Partition times have no zone: they are in the zone of this machine, as in Java.
    before = datetime.fromtimestamp(before_ms / 1000)  # noqa: DTZ006  (local, without a zone)
    for partition in dict.fromkeys(entry.partition for entry in live_files(table, snapshot)):
        at = partition_moment(table, partition, options)
        if at is not None and before > at:
            yield partition


def partition_moment(
    table: FileStoreTable, partition: bytes, options: Mapping[str, str]
) -> datetime | None:
    """Return the time of a serialized partition, without a time zone.

    If its values do not contain a time, a warning is logged and the result is None. Raises
    UnsupportedError if `partition.timestamp-formatter` has a letter that is not supported, or no
    day.
    """
    texts = _texts(table, partition)
    at = partition_time(table.schema.partition_keys, texts, options)
    if at is None:
        context = {"table": table.name, "partition": ",".join(map(str, texts))}
        _LOG.warning("partition_tells_no_time", extra={"ctx": context})
    return at


def _old_by_change(
    table: FileStoreTable, snapshot: Snapshot | None, before_ms: int
) -> Iterator[bytes]:
    newest: dict[bytes, int] = {}
    for entry in live_files(table, snapshot):
        created_ms = entry.file.creation_time_ms
        # A file of unknown age keeps its partition.
        created_ms = before_ms if created_ms is None else created_ms
        newest[entry.partition] = max(newest.get(entry.partition, 0), created_ms)
    return (partition for partition, created_ms in newest.items() if before_ms > created_ms)


def _texts(table: FileStoreTable, partition: bytes) -> list[str | None]:
    keys, types = table.schema.partition_keys, table.partition_types
    values = deserialize_row(types, partition)
    return [
        None if value is None else java_text(name, t, value, legacy=True)
        for name, t, value in zip(keys, types, values, strict=True)
    ]


def _spec(table: FileStoreTable, partition: bytes) -> dict[str, object]:
    values: Sequence[object] = table.partition_values(partition)
    return dict(zip(table.schema.partition_keys, values, strict=True))


@dataclass(frozen=True, slots=True)
class _Format:
    """A date pattern as a regular expression with a group for each letter.

    If `lenient`, months and days beyond their range carry over to the next year or month.
    """

    expression: re.Pattern[str]
    lenient: bool


def partition_time(
    names: Sequence[str], values: Sequence[str | None], options: Mapping[str, str]
) -> datetime | None:
    """Return the time of a partition, without a time zone, or None if its values do not contain it.

    `names` are the partition columns, and `values` their values as text (None: null), with dates as
    numbers of days since 1970. The time is the value of the first column, or the option
    `partition.timestamp-pattern` filled with the values. Raises UnsupportedError if
    `partition.timestamp-formatter` has a letter that is not supported, or no day.
    """
    pattern = honoured.PARTITION_PATTERN.of(options)
    by_name = dict(zip(names, values, strict=True))
    text = values[0] if pattern is None else _filled(pattern, by_name)
    if text is None:
        return None
    wanted = honoured.PARTITION_FORMATTER.of(options)
    return _parse(text, _Format(_DEFAULT, lenient=True) if wanted is None else _format(wanted))


def _filled(pattern: str, values: Mapping[str, str | None]) -> str | None:
    """Return the pattern with each `$column` replaced by its value.

    Longer column names are matched first. Returns None if one of the values is null.
    """
    names = sorted(map(re.escape, values), key=len, reverse=True)
    wanted = re.findall(rf"\$({'|'.join(names)})", pattern)
    if any(values[name] is None for name in wanted):
        return None
    return re.sub(rf"\$({'|'.join(names)})", lambda match: str(values[match[1]]), pattern)


def _parse(text: str, wanted: _Format) -> datetime | None:
    match = wanted.expression.fullmatch(text)
    if match is None:
        return None
    parts = {letter: value for letter, value in match.groupdict().items() if value is not None}
    numbers = {letter: int(parts.get(letter, "0")) for letter in "yMdHms"}
    if len(parts.get("y", "")) == 2 and not wanted.lenient:
        numbers["y"] += 2000
    nanos = int(parts.get("S", "0").ljust(9, "0")[:9])
    return _moment(numbers, nanos // 1000, lenient=wanted.lenient)


def _moment(numbers: Mapping[str, int], micros: int, *, lenient: bool) -> datetime | None:
    year, month, day = numbers["y"], numbers["M"], numbers["d"]
    clock = timedelta(
        hours=numbers["H"], minutes=numbers["m"], seconds=numbers["s"], microseconds=micros
    )
    if not lenient and not _is_possible(numbers):
        return None
    year, month = year + (month - 1) // _MONTHS, (month - 1) % _MONTHS + 1
    try:
        if lenient:
            return datetime(year, month, 1) + timedelta(days=day - 1) + clock  # noqa: DTZ001  (a partition names no time zone)
        return _last_valid(year, month, day) + clock
    except (ValueError, OverflowError):
        return None


def _is_possible(numbers: Mapping[str, int]) -> bool:
    limits = {"M": (1, 12), "d": (1, 31), "H": (0, 23), "m": (0, 59), "s": (0, 59)}
    return all(low <= numbers[letter] <= high for letter, (low, high) in limits.items())


def _last_valid(year: int, month: int, day: int) -> datetime:
    """Return a day of a month, or the last day of the month if it has fewer days."""
    first = datetime(year, month, 1)  # noqa: DTZ001  (a partition names no time zone)
    next_month = (first + timedelta(days=31)).replace(day=1)
    return min(first + timedelta(days=day - 1), next_month - timedelta(days=1))


@lru_cache(maxsize=64)
def _format(pattern: str) -> _Format:
    expressions = [_expression(pattern, *piece) for piece in _parts(pattern)]
    text = "".join(expressions)
    if not all(f"(?P<{letter}>" in text for letter in "yMd"):
        raise UnsupportedError(
            f"option '{FORMATTER}' = '{pattern}' is not supported: it names no day"
        )
    return _Format(re.compile(text), lenient=False)


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield runs of a letter as (letter, run), and other text as ("", text)."""
    pieces = re.findall(r"'(?:[^']|'')*'|.", pattern, re.DOTALL)
    for key, run in itertools.groupby(pieces, key=lambda piece: piece):
        text = "".join(run)
        if len(key) > 1:
            yield "", text[1:-1].replace("''", "'") or "'"
        elif key.isascii() and key.isalpha():
            yield key, text
        else:
            yield "", text


def _expression(pattern: str, letter: str, run: str) -> str:
    if not letter:
        return re.escape(run)
    if letter in _YEAR and len(run) in (2, 4):
        return rf"(?P<y>\d{{{len(run)}}})"
    if letter == "S":
        return rf"(?P<S>\d{{{len(run)}}})"
    if letter in "MdHms" and len(run) <= 2:
        return rf"(?P<{letter}>\d{{{len(run)},2}})"
    raise UnsupportedError(
        f"option '{FORMATTER}' = '{pattern}' is not supported: '{run}' is not "
        "implemented; use yyyy, MM, dd, HH, mm, ss and SSS"
    )

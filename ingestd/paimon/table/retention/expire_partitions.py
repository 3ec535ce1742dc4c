"""Expiry of partitions: those whose time, or last change, is too long ago are dropped.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-partitions/

They go in an OVERWRITE snapshot, as dropped ones do: older
snapshots show them until they expire.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.paths import java_text
from ingestd.paimon.table.commit.overwrite import Going, drop_partitions, going
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.scan import live_files
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.retention.partition_time import partition_time

EXPIRATION_TIME = honoured.PARTITION_EXPIRATION.name

_VALUES, _UPDATES = "values-time", "update-time"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExpiredPartitions:
    """Partitions that expire, and the snapshots that took them out (none in a plan)."""

    partitions: tuple[Going, ...] = ()
    snapshots: tuple[int, ...] = ()


def expire_partitions(
    table: FileStoreTable, options: Mapping[str, str], now_ms: int, *, dry_run: bool = False
) -> ExpiredPartitions:
    """Drop what has expired; nothing without the option `partition.expiration-time`.

    At most `partition.expiration-max-num` partitions go at a time, by name, in snapshots of
    `partition.expiration-batch-size` each (without it all in one). ConfigError and
    UnsupportedError name an option that cannot be followed; raises as `drop_partitions`.
    """
    if EXPIRATION_TIME not in options or not table.schema.partition_keys:
        return ExpiredPartitions()
    expired = _expired(table, options, now_ms)[: honoured.PARTITION_MAX.of(options)]
    snapshot = latest_snapshot(table.io, table.paths)
    parts = tuple(going(table, snapshot, frozenset(expired))) if expired else ()
    if dry_run or not parts:
        return ExpiredPartitions(parts)
    batch = honoured.PARTITION_BATCH.of(options) or len(expired)
    made = []
    for start in range(0, len(expired), batch):
        specs = [_spec(table, one) for one in expired[start : start + batch]]
        result = drop_partitions(table, specs, now_ms=now_ms)
        if result.snapshot is not None:
            made.append(result.snapshot.id)
    return ExpiredPartitions(parts, tuple(made))


def _expired(table: FileStoreTable, options: Mapping[str, str], now_ms: int) -> list[bytes]:
    """Serialized partitions that have expired, in the order of their texts."""
    strategy = honoured.PARTITION_STRATEGY.of(options)
    age = honoured.PARTITION_EXPIRATION.of(options) or 0
    if age <= 0:
        raise ConfigError(f"option '{EXPIRATION_TIME}' = '{options[EXPIRATION_TIME]}': no time")
    if strategy == _VALUES:
        found = set(_old_by_value(table, options, now_ms - age))
    elif strategy == _UPDATES:
        found = set(_old_by_change(table, now_ms - age))
    else:
        raise UnsupportedError(
            f"option '{honoured.PARTITION_STRATEGY.name}' = '{strategy}' is not supported; "
            f"supported: {_VALUES}, {_UPDATES}"
        )
    default = table.options.partition_default_name
    return sorted(found, key=lambda one: ",".join(text or default for text in _texts(table, one)))


def _old_by_value(
    table: FileStoreTable, options: Mapping[str, str], before_ms: int
) -> Iterator[bytes]:
    # Partitions name times without a zone; they are those of this machine's, as in Java.
    before = datetime.fromtimestamp(before_ms / 1000)  # noqa: DTZ006  (local, without a zone)
    keys = table.schema.partition_keys
    for partition in _partitions(table):
        texts = _texts(table, partition)
        at = partition_time(keys, texts, options)
        if at is None:
            context = {"table": table.name, "partition": ",".join(map(str, texts))}
            _LOG.warning("partition_tells_no_time", extra={"ctx": context})
        elif before > at:
            yield partition


def _old_by_change(table: FileStoreTable, before_ms: int) -> Iterator[bytes]:
    newest: dict[bytes, int] = {}
    for entry in live_files(table, latest_snapshot(table.io, table.paths)):
        made = entry.file.creation_time_ms
        # A file of unknown age keeps its partition.
        made = before_ms if made is None else made
        newest[entry.partition] = max(newest.get(entry.partition, 0), made)
    return (partition for partition, made in newest.items() if before_ms > made)


def _partitions(table: FileStoreTable) -> list[bytes]:
    live = live_files(table, latest_snapshot(table.io, table.paths))
    return list(dict.fromkeys(entry.partition for entry in live))


def _texts(table: FileStoreTable, partition: bytes) -> list[str | None]:
    keys, types = table.schema.partition_keys, table.partition_types
    values = deserialize_row(types, partition)
    return [
        None if value is None else java_text(name, t, value, legacy=True)
        for name, t, value in zip(keys, types, values, strict=True)
    ]


def _spec(table: FileStoreTable, partition: bytes) -> dict[str, object]:
    values: Sequence[object] = deserialize_row(table.partition_types, partition)
    return dict(zip(table.schema.partition_keys, values, strict=True))

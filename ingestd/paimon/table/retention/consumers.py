"""Consumers: positions of streaming readers, which protect snapshots from expiry.

A consumer is a small file with the id of the next snapshot that the reader will read.
"""

import json
from collections.abc import Iterable, Mapping

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.tags import check_name

_PREFIX = "consumer-"


def consumers(table: FileStoreTable) -> Mapping[str, int]:
    """Return the id of the next snapshot of each consumer, by consumer id.

    Raises FormatError, naming the file, if a consumer file is damaged.
    """
    names = table.io.list_names(table.paths.consumer_dir)
    ids = sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
    next_snapshots: dict[str, int] = {}
    for consumer_id in ids:
        path = _path(table, consumer_id)
        try:
            next_snapshots[consumer_id] = int(json.loads(table.io.read_bytes(path))["nextSnapshot"])
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(f"consumer file {path} cannot be read: {error}") from error
    return next_snapshots


def reset_consumer(table: FileStoreTable, consumer_id: str, next_snapshot: int) -> None:
    """Set the next snapshot of a consumer; create the consumer if it does not exist.

    Raises ConfigError for an invalid consumer id.
    """
    check_name("consumer", consumer_id)
    data = json.dumps({"nextSnapshot": next_snapshot}).encode()
    table.io.overwrite(_path(table, consumer_id), data)


def delete_consumer(table: FileStoreTable, consumer_id: str) -> None:
    """Delete a consumer.

    Raises ConfigError, which lists the existing consumers, if it does not exist.
    """
    known = consumers(table)
    if consumer_id not in known:
        existing = ", ".join(known) or "none"
        raise ConfigError(
            f"table {table.name} has no consumer '{consumer_id}'; its consumers: {existing}"
        )
    table.io.delete_quietly(_path(table, consumer_id))


def expired_consumers(table: FileStoreTable, now_ms: int, retained_ms: int | None) -> list[str]:
    """Return the ids of the consumers that made no progress for `retained_ms` milliseconds.

    The progress of a consumer is the last modification of its file. `now_ms` is in milliseconds of
    the epoch. If `retained_ms` is None, returns [].
    """
    if retained_ms is None:
        return []
    return [
        entry.name.removeprefix(_PREFIX)
        for entry in table.io.list_entries(table.paths.consumer_dir)
        if entry.name.startswith(_PREFIX) and now_ms - retained_ms > entry.modified_ms
    ]


def forget_consumers(table: FileStoreTable, ids: Iterable[str]) -> None:
    """Delete consumers, if they exist; failures are logged, not raised."""
    for consumer_id in ids:
        table.io.delete_quietly(_path(table, consumer_id))


def _path(table: FileStoreTable, consumer_id: str) -> str:
    return f"{table.paths.consumer_dir}/{_PREFIX}{consumer_id}"

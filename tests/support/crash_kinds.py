"""Tables of every kind that may be killed at work, what comes for them, and what they must hold.

The records of a topic are a function of partition and offset, so no broker has to keep them; every
change carries its number, so a lost or doubled one shows.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.data_types import parse_type

PARTITIONS = 2
BATCHES = 3
PER_BATCH = 8
"""Records of each partition in a batch."""
BAD_OFFSET = 3
"""A record of partition 0 that no format understands: it becomes a dead letter."""
_KEYS = 4
_EXPIRES = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
COLUMNS = {
    "id": "BIGINT NOT NULL",
    "number": "BIGINT",
    "part": "STRING NOT NULL",
    "note": "STRING",
}
_SMALL = {"manifest.merge-min-count": "3", "num-sorted-run.compaction-trigger": "2"}

Row = tuple[int, int, str, str]
Fold = Literal["all", "last", "first"]


@dataclass(frozen=True)
class Kind:
    """One kind of table: its options and keys, and how changes become rows."""

    options: Mapping[str, str]
    keys: tuple[str, ...] = ("id",)
    partition_keys: tuple[str, ...] = ()
    fold: Fold = "last"
    tells_changes: bool = False

    @property
    def settings(self) -> TableSettings:
        """What a configuration would say of the table."""
        types = {name: parse_type(text) for name, text in COLUMNS.items()}
        options = {**_SMALL, **({} if self.tells_changes else _EXPIRES), **self.options}
        return TableSettings(self.keys, self.partition_keys, options, types)


KINDS: Mapping[str, Kind] = {
    "append": Kind({"bucket": "-1"}, keys=(), fold="all"),
    "append-buckets": Kind({"bucket": "2", "bucket-key": "id"}, keys=(), fold="all"),
    "keyed": Kind({"bucket": "2"}),
    "dynamic": Kind({"bucket": "-1", "dynamic-bucket.target-row-num": "3"}),
    "moving": Kind({"bucket": "-1"}, partition_keys=("part",)),
    "told": Kind({"bucket": "2", "changelog-producer": "input"}, tells_changes=True),
    "looked-up": Kind({"bucket": "1", "changelog-producer": "lookup"}, tells_changes=True),
    "vectors": Kind(
        {
            "bucket": "1",
            "deletion-vectors.enabled": "true",
            "num-sorted-run.compaction-trigger": "5",
        }
    ),
    "first": Kind({"bucket": "1", "merge-engine": "first-row"}, fold="first"),
    "postponed": Kind({"bucket": "-2"}),
}


@dataclass(frozen=True)
class Change:
    """One change of one row."""

    operation: Literal["c", "u", "d"]
    row: Row
    before: Row | None = field(default=None)


@cache
def changes(fold: Fold, partition: int) -> tuple[Change, ...]:
    """All changes of a topic partition, by offset."""
    live: dict[int, Row] = {}
    found = []
    for offset in range(BATCHES * PER_BATCH):
        number = offset * PARTITIONS + partition
        key = partition + PARTITIONS * (offset * 7 % _KEYS + (offset // 11) % 2)
        row = (key, number, f"p{(offset // 3) % 2}", _note(offset))
        before = live.get(key)
        if fold == "all" or before is None:
            one = Change("c", row)
        elif fold == "last" and offset % 5 == 4:
            one = Change("d", before, before)
        else:
            one = Change("u", row, before)
        if (partition, offset) != (0, BAD_OFFSET):
            live.pop(key, None) if one.operation == "d" else live.update({key: row})
        found.append(one)
    return tuple(found)


def record(kind: Kind, partition: int, offset: int) -> tuple[bytes | None, bytes]:
    """Key and value of a record, as Debezium writes it."""
    if (partition, offset) == (0, BAD_OFFSET):
        return None, b"{this is no record"
    one = changes(kind.fold, partition)[offset]
    source = {"connector": "postgresql", "name": "s", "ts_ms": offset, "db": "bank"}
    source |= {"schema": "bank", "table": "t", "lsn": 1000 + offset, "snapshot": "false"}
    after = None if one.operation == "d" else _document(one.row)
    before = _document(one.before) if one.before else None
    event = {"before": before, "after": after, "source": source, "op": one.operation}
    key = json.dumps({"id": one.row[0]}).encode() if kind.keys else None
    return key, json.dumps(event).encode()


def expected(kind: Kind) -> list[Row]:
    """The rows that the table holds in the end, sorted."""
    rows = list(_good(kind))
    if kind.fold == "all":
        return sorted(one.row for one in rows)
    final: dict[int, Row] = {}
    for row in rows:
        if row.operation == "d":
            final.pop(row.row[0], None)
        elif kind.fold == "last":
            final[row.row[0]] = row.row
        else:
            final.setdefault(row.row[0], row.row)
    return sorted(final.values())


def _good(kind: Kind) -> Iterator[Change]:
    for partition in range(PARTITIONS):
        for offset, change in enumerate(changes(kind.fold, partition)):
            if (partition, offset) != (0, BAD_OFFSET):
                yield change


def _note(offset: int) -> str:
    """Long in the first batch, so that its file is worth more than to be compacted at once."""
    size = 32 if offset < PER_BATCH else 0
    return "".join(hashlib.sha256(bytes([offset, n])).hexdigest() for n in range(size))


def _document(row: Row) -> dict[str, Any]:
    return dict(zip(COLUMNS, row, strict=True))

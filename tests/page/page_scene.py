"""A daemon's hour with something of everything in it, for pictures of its page: always the same."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from ingestd.daemon.status import Status
from ingestd.errors import SourceSilentError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample, TopicPartition
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.table_schema import TableSchema

BEGIN = 1_795_000_000.0
_STEP = 10.0
_STEPS = 360
_TOPIC = "shop.bank"
_PARTITIONS = 4
_TABLES = ("account", "entry")
_COLUMNS = ("id BIGINT", "owner STRING", "balance DECIMAL(12, 2)")


@dataclass(slots=True)
class _Clock:
    now: float = BEGIN

    def __call__(self) -> float:
        return self.now


def scene() -> Status:
    """After an hour, in the middle of a batch."""
    clock = _Clock()
    status = Status("shop", "0.1.0", ["shop"], clock, clock)
    status.enter("running")
    schema = _schema()
    status.tables_opened({"ods.account": OpenedTable(schema)})
    status.show_maintenance(_maintenance)
    offset = 0
    for n in range(_STEPS):
        clock.now += _STEP
        size = int(4000 + 1500 * math.sin(n / 30) + 400 * math.sin(n * n))
        waiting = max(0, 60_000 - 900 * abs(n - 200))
        status.source_answered("shop", _ends(offset + size + waiting))
        status.batch_started(str(n), _ranges(offset, offset + size))
        offset += size
        status.batch_finished(_summary(n, offset, size, clock.now))
        status.sample()
    status.failed(
        SourceSilentError(
            "broker kafka-2:9092 of source shop does not respond: Connection refused; look at the "
            "broker and at the network policy; it is tried again until it does"
        )
    )
    wider = replace(
        schema, id=1, fields=(*schema.fields, DataField(3, "limit", parse_type("DECIMAL(12, 2)")))
    )
    status.tables_opened({"ods.account": OpenedTable(wider, _STEPS, clock.now)})
    status.enter("running")
    status.batch_started(str(_STEPS), _ranges(offset, offset + 5000))
    status.phase("stages", 1.4)
    clock.now += 2
    return status


def _schema() -> TableSchema:
    fields = [column.split(" ", 1) for column in _COLUMNS]
    return TableSchema(
        0, tuple(DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(fields)), 2
    )


def _ranges(start: int, until: int) -> list[OffsetRange]:
    return [OffsetRange("shop", _TOPIC, index, start, until) for index in range(_PARTITIONS)]


def _ends(end: int) -> dict[str, dict[int, int]]:
    return {_TOPIC: dict.fromkeys(range(_PARTITIONS), end)}


def _summary(n: int, offset: int, size: int, now: float) -> BatchSummary:
    bad = n in {70, 301}
    counts = Counts(
        records=Counter(
            {TopicPartition("shop", _TOPIC, index): size for index in range(_PARTITIONS)}
        ),
        rejected=Counter({("decode", "invalid-json"): 1} if bad else {}),
        rows=Counter({(f"ods.{table}", 0): 2 * size for table in _TABLES}),
        files=Counter({f"ods.{table}": 2 for table in _TABLES}),
    )
    times = BatchTimes()
    for index in range(_PARTITIONS):
        times.reached[TopicPartition("shop", _TOPIC, index)] = (offset - 1, int((now - 2) * 1000))
    for table in _TABLES:
        times.note_event(f"ods.{table}", int((now - 2) * 1000))
    sample = RejectedSample(
        "shop", _TOPIC, 2, offset - 7, "decode", "invalid-json",
        "the message value is not JSON: object keys must be strings (byte 1)",
    )  # fmt: skip
    return BatchSummary(
        str(n),
        {"shop": _ends(offset)},
        tuple(TableCommit(f"ods.{table}", "committed", n + 1, 1, 0.03) for table in _TABLES),
        counts,
        (sample,) if bad else (),
        {"stages": 0.3 + size / 20_000, "commit": 0.05, "claims": 0.01, "total": 0.4 + size / 2e4},
        times=times,
        topics={f"ods.{table}": frozenset({("shop", _TOPIC)}) for table in _TABLES},
    )


def _maintenance() -> dict[str, Any]:
    done = {"at": BEGIN + 3580, "table": "ods.account", "result": "compacted", "seconds": 2.4,
            "files_before": 12, "files_after": 2, "bytes_read": 9_204_311,
            "bytes_written": 7_020_194, "snapshot_id": 353, "message": ""}  # fmt: skip
    return {
        "mode": "background",
        "throttled_by": None,
        "over_stop_trigger": [],
        "tables": {
            "ods.account": {"level_0": 3, "sorted_runs": 4},
            "ods.entry": {"level_0": 4, "sorted_runs": 5},
        },
        "compactions": [done, {**done, "at": BEGIN + 3521, "table": "ods.entry"}],
    }

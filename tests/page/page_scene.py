"""A daemon's hour with something of everything in it, for pictures of its page: always the same."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ingestd.config.effective import Setting
from ingestd.daemon.console.stored_dead_letters import StoredDeadLetters
from ingestd.daemon.console.table_details import LevelFiles, TableDetails
from ingestd.daemon.status import Status
from ingestd.errors import SourceSilentError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
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
    status.show_configuration(lambda: [Setting(*setting) for setting in _SETTINGS])
    status.tables_opened({"ods.account": OpenedTable(_wider(), _STEPS, clock.now)})
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


def _wider() -> TableSchema:
    schema = _schema()
    limit = DataField(3, "limit", parse_type("DECIMAL(12, 2)"))
    return replace(schema, id=1, fields=(*schema.fields, limit), primary_keys=("id",))


def _ranges(start: int, until: int) -> list[OffsetRange]:
    return [OffsetRange("shop", _TOPIC, index, start, until) for index in range(_PARTITIONS)]


def _ends(end: int) -> dict[str, dict[int, int]]:
    return {_TOPIC: dict.fromkeys(range(_PARTITIONS), end)}


def _summary(n: int, offset: int, size: int, now: float) -> BatchSummary:
    bad = n in {70, 301}
    counts = Counts(
        records=Counter(
            {SourcePartition("shop", _TOPIC, index): size for index in range(_PARTITIONS)}
        ),
        rejected=Counter({("decode", "invalid-json"): 1} if bad else {}),
        rows=Counter({(f"ods.{table}", 0): 2 * size for table in _TABLES}),
        files=Counter({f"ods.{table}": 2 for table in _TABLES}),
    )
    times = BatchTimes()
    for index in range(_PARTITIONS):
        times.reached[SourcePartition("shop", _TOPIC, index)] = (offset - 1, int((now - 2) * 1000))
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


_SETTINGS = (
    ("compaction.mode", "background", "default"),
    ("http.auth-file", "/run/secrets/token", "shop.yaml:31"),
    ("pipeline.name", "shop", "shop.yaml:1"),
    ("pipeline.trigger", "10s", "INGESTD__PIPELINE__TRIGGER"),
    ("sources.shop.format", "debezium-json", "shop.yaml:9"),
    ("sources.shop.kafka.bootstrap.servers", "kafka-1:9092,kafka-2:9092", "shop.yaml:11"),
    ("sources.shop.kafka.sasl.password", "${file:/run/secrets/kafka}", "shop.yaml:14"),
    ("sources.shop.kafka.ssl.key.password", "***", "shop.yaml:15"),
    ("warehouse.database", "ods", "shop.yaml:5"),
    ("warehouse.path", "s3://lake/shop", "shop.yaml:4"),
)


class SceneTables:
    """What the console would read of the warehouse."""

    def details(self, _: str) -> TableDetails:
        columns = ((1, 1, 1.0), (5, 2, 60.0))
        snapshots = tuple(
            Snapshot(
                id=number, schema_id=1, base_manifest_list="b", delta_manifest_list="d",
                changelog_manifest_list=None, commit_user="ingestd-shop",
                commit_identifier=number, commit_kind=kind,
                time_millis=int(BEGIN + number * 10) * 1000, total_record_count=1_089_000 + number,
                delta_record_count=delta,
            )
            for number, kind, delta in (
                (361, CommitKind.APPEND, 6_544), (360, CommitKind.COMPACT, -12_310),
                (359, CommitKind.APPEND, 5_902),
            )
        )  # fmt: skip
        levels = tuple(
            LevelFiles(level, files * 3, int(files * size * 9000), int(files * size * 1_048_576))
            for level, files, size in columns
        )
        changes = ((1, BEGIN + 3600, "added limit DECIMAL(12, 2)"),)
        return TableDetails(_wider(), changes, snapshots, levels)

    def dead_letters(self, *, with_bytes: bool) -> StoredDeadLetters:
        reasons = (
            ("decode", "invalid-json", b'{"op": "c", "after": {"id": 17, balance'),
            ("cast", "overflow", b'{"op": "u", "after": {"id": 9, "balance": "1e40"}}'),
        )
        newest = [
            {
                "topic": _TOPIC, "partition": n % 4, "offset": 1_287_425 - 977 * n,
                "timestamp": datetime.fromtimestamp(BEGIN + 3020 - 400 * n, UTC),
                "table": "ods.account", "stage": reasons[n % 2][0], "reason": reasons[n % 2][1],
                "message": ("the message value is not JSON: unexpected end (byte 40)",
                            "column balance: 1e40 does not fit DECIMAL(12, 2)")[n % 2],
                "key": b'{"id": %d}' % n, "value": reasons[n % 2][2],
            }
            for n in range(4)
        ]  # fmt: skip
        counts = [((_TOPIC, stage, reason), 71 - n) for n, (stage, reason, _) in enumerate(reasons)]
        return StoredDeadLetters(newest, counts, 141, 141, has_bytes=True)

    def replay_command(self) -> str:
        return "ingestd dlq replay s3://lake/shop ods --config /etc/ingestd/shop.yaml"

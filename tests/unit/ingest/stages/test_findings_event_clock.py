"""When changes were made, as a decode task tells it."""

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from ingestd.cdc.base import ChangeBatch, FormatSettings, RecordChunk
from ingestd.cdc.schema_lookup import Framing, RegisteredSchema, SchemaId
from ingestd.ingest.computed.metadata_columns import event_times
from ingestd.ingest.rows.conform import ShapedRows
from ingestd.ingest.settings.context import QualifiedSourceTable, SourceSettings
from ingestd.ingest.stages.findings import EventClock
from ingestd.ingest.values.batch_times import BatchTimes, EventSpan
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.kafka.properties import KafkaSource
from tests.support.ingest_rig import Rig
from tests.support.json_changes import Change, record

HERE = SourcePartition("s", "t", 0)
SOURCE_TABLE = QualifiedSourceTable("s", "db", None, "t")
FIRST = 100
MESSAGES = [
    ("debezium-json", b'{"ts_ms":1,"source":{"ts_ms":5,"db":"d"},"after":{"ts_ms":2}}', 5),
    ("debezium-json", b'{"schema":{},"payload":{"source":{"ts_ms":6},"ts_ms":1}}', 6),
    ("debezium-bson", b'{"source":{"ts_ms":5}}', 5),
    ("canal-json", b'{"es":7,"ts":8,"data":[{"es":1}]}', 7),
    ("maxwell-json", b'{"data":{"ts":1},"ts":9}', 9000),
    ("debezium-flat-json", b'{"id":1,"__source_ts_ms":8,"__ts_ms":9,"__op":"c"}', 8),
]


def change(time: int | None) -> bytes:
    return json.dumps({"source": {"ts_ms": time}, "after": {"id": 1}}).encode()


def chunk(*values: bytes | None, stamp: int = 77) -> RecordChunk:
    offsets = np.arange(FIRST, FIRST + len(values), dtype=np.int64)
    stamps = np.full(len(values), stamp, np.int64)
    return RecordChunk("t", 0, offsets, stamps, [None] * len(values), list(values), None)


def shaped(offsets: npt.NDArray[np.int64]) -> ShapedRows:
    """Rows of a table at these offsets."""
    rows, unknown = len(offsets), np.full(len(offsets), -1)
    kinds, snapshot = np.zeros(rows, np.int8), np.zeros(rows, np.bool_)
    batch = ChangeBatch(
        SOURCE_TABLE.unqualified, pa.table({}), {}, (), kinds, offsets, unknown, snapshot, {}
    )
    return ShapedRows("db.t", SOURCE_TABLE, batch=batch)


class NoSchemas:
    """A registry without schemas."""

    def find(self, schema_id: SchemaId) -> RegisteredSchema | None:
        return None

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        return ()


def change_time(data_format: str, message: bytes | None) -> int | None:
    """The time of a change in a message of a source without a schema registry."""
    times = BatchTimes()
    source = SourceSettings(KafkaSource("s", ("t",)), data_format)
    EventClock({"s": source}, times).note("s", chunk(message, stamp=-1), [])
    return times.reached[HERE][1] if times.reached else None


def clock() -> tuple[EventClock, BatchTimes]:
    times = BatchTimes()
    settings = FormatSettings(schemas=NoSchemas(), framing=Framing())
    source = SourceSettings(KafkaSource("s", ("t",)), "debezium-json", settings)
    return EventClock({"s": source}, times), times


@pytest.mark.parametrize(("data_format", "message", "time"), MESSAGES)
def test_a_message_has_the_time_of_the_metadata_column(
    data_format: str, message: bytes, time: int
) -> None:
    assert change_time(data_format, message) == time
    assert event_times(data_format, [message]).to_pylist() == [time]


@pytest.mark.parametrize(
    "message",
    [
        None,
        b"",
        b"{",
        b"[1]",
        b"\xff",
        b'{"source":[]}',
        b'{"source":null}',
        b'{"source":{"ts_ms":"x"}}',
        b'{"source":{"ts_ms":1.5}}',
        b'{"source":{"ts_ms":0}}',
        b'{"source":{"ts_ms":-4}}',
        b'{"source":{"ts_ms":99999999999999999999}}',
        b'{"ts_ms":5}',
    ],
)
def test_an_odd_message_has_no_time(message: bytes | None) -> None:
    assert change_time("debezium-json", message) is None


def test_formats_without_an_event_time_have_none() -> None:
    assert change_time("debezium-avro", change(5)) is None


def test_the_first_and_the_last_row_set_the_time_of_their_table() -> None:
    one, times = clock()
    data = chunk(change(9), change(4), change(1), change(8))
    one.note("s", data, [shaped(data.offsets[1:])])
    assert times.events == {"db.t": EventSpan(4, 8)}


def test_the_last_record_shows_how_far_its_topic_partition_was_read() -> None:
    one, times = clock()
    one.note("s", chunk(change(4), change(8)), [])
    one.note("s", chunk(change(5)), [])
    assert times.reached == {HERE: (FIRST + 1, 8)}
    assert times.events == {}


def test_a_record_without_a_time_of_its_own_has_that_of_kafka() -> None:
    one, times = clock()
    data = chunk(change(80), None, stamp=77)
    one.note("s", data, [shaped(data.offsets)])
    assert times.reached == {HERE: (FIRST + 1, 77)}
    assert times.events == {"db.t": EventSpan(77, 80)}


def test_a_record_without_any_time_is_ignored() -> None:
    one, times = clock()
    data = chunk(None, stamp=-1)
    one.note("s", data, [shaped(data.offsets)])
    assert times == BatchTimes()


@pytest.mark.parametrize("schema_id", [1, 0x7B])
def test_a_frame_before_the_message_is_no_part_of_it(schema_id: int) -> None:
    one, times = clock()
    framed = b"\x00" + schema_id.to_bytes(4, "big") + change(9)
    one.note("s", chunk(framed), [])
    assert times.reached == {HERE: (FIRST, 9)}


@pytest.mark.usefixtures("json_changes")
def test_times_reach_the_driver_by_table_and_topic_partition() -> None:
    rig = Rig(data_format="debezium-json")
    rig.produce(*(record(Change({"id": i})) for i in range(7)))
    rig.produce(*(record(Change({"id": i}, table="items")) for i in range(2)), partition=1)
    times = rig.run().times
    assert times.events == {
        "lake.orders": EventSpan(1000, 1006),
        "lake.items": EventSpan(1000, 1001),
    }
    assert times.reached == {
        SourcePartition("src", "orders", 0): (6, 1006),
        SourcePartition("src", "orders", 1): (1, 1001),
    }


@pytest.mark.usefixtures("json_changes")
def test_rows_that_the_table_holds_are_not_reported_again() -> None:
    rig = Rig()
    rig.produce(*(record(Change({"id": i})) for i in range(2)))
    rig.run()
    rig.committed.clear()
    rig.produce(*(record(Change({"id": i})) for i in range(2, 4)))
    covered = {"lake.orders": {"covered": {"src": {"orders": {0: 3}}}}}
    times = rig.round(rig.context(table_changes=covered), rig.ranges()).times
    assert times.events == {"lake.orders": EventSpan(1003, 1003)}

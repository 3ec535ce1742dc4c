"""The time of a change is read off messages, odd ones among them."""

from typing import Any

import pytest

from ingestd.cdc.schema_lookup import Framing
from ingestd.errors import UnsupportedError
from ingestd.ingest.computed.metadata_columns import event_times


@pytest.mark.parametrize(
    ("data_format", "message", "time"),
    [
        ("debezium-json", b'{"ts_ms":1,"source":{"ts_ms":5,"db":"d"},"after":{"ts_ms":2}}', 5),
        ("debezium-json", b'{"schema":{},"payload":{"source":{"ts_ms":6},"ts_ms":1}}', 6),
        ("debezium-bson", b'{"source":{"ts_ms":5}}', 5),
        ("canal-json", b'{"es":7,"ts":8,"data":[{"es":1}]}', 7),
        ("maxwell-json", b'{"data":{"ts":1},"ts":9}', 9000),
        ("debezium-flat-json", b'{"id":1,"__source_ts_ms":8,"__ts_ms":9}', 8),
        ("debezium-flat-json", b'{"schema":{},"payload":{"__source_ts_ms":8}}', 8),
    ],
)
def test_each_format_has_its_place(data_format: str, message: bytes, time: int) -> None:
    assert event_times(data_format, [message, message]).to_pylist() == [time, time]


@pytest.mark.parametrize(
    "irregular",
    [
        b'{"source":{"ts_ms":"x"}}',
        b'{"source":{"ts_ms":1.5}}',
        b'{"source":{"ts_ms":99999999999999999999}}',
        b'{"source":[]}',
        b"[1]",
        b"{",
        b"\xff",
        b'{"source":{}}\n{"source":{}}',
        b"",
        None,
    ],
)
def test_odd_messages_have_no_time_and_spoil_no_other(irregular: Any) -> None:
    good = b'{\n"source":{"ts_ms":9}}'
    assert event_times("debezium-json", [good, irregular, good]).to_pylist() == [9, None, 9]


@pytest.mark.parametrize(
    ("framing", "frame"),
    [
        (Framing(), b"\x00" + (0x7B).to_bytes(4)),
        (Framing(id_bytes=8), b"\x00" + (5).to_bytes(8)),
        (Framing(), b"\x01" + bytes(16)),
    ],
)
def test_the_schema_id_before_a_message_is_no_part_of_it(framing: Framing, frame: bytes) -> None:
    message = frame + b'{"es":7}'
    assert event_times("canal-json", [message, None], framing).to_pylist() == [7, None]


def test_no_messages_have_no_times() -> None:
    assert event_times("canal-json", []).to_pylist() == []


def test_formats_without_event_times_are_refused_by_name() -> None:
    with pytest.raises(
        UnsupportedError, match=r"'avro' do not contain the time of a change.*canal-json"
    ):
        event_times("avro", [])

"""The pipelines of docs/rows.md do what the page says."""

import hmac
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from tests.support.code_blocks import shown
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, UPDATE_AFTER, Change, JsonChanges, record

SOURCE = "{kafka: {bootstrap.servers: 'b:9092'}, topics: [orders], format: debezium-json}"


def rig_of(first: str, folder: Path) -> Rig:
    """Return a rig with the tables of the block that begins with this line."""
    file = folder / "rows.yaml"
    smallest = f"warehouse: {{path: /lake}}\nsources: {{shop: {SOURCE}}}\n"
    file.write_text(smallest + shown("docs/rows.md", first).text)
    settings = pipeline_settings(load_config(file, {}))
    return Rig(settings=settings.tables, defaults=settings.defaults)


def test_where_keeps_the_rows_that_the_page_says(tmp_path: Path, json_changes: JsonChanges) -> None:
    rig = rig_of("# rows.yaml", tmp_path)
    rows = [
        {"id": 1, "status": "paid", "tenant": 3},
        {"id": 2, "status": "draft", "tenant": 3},
        {"id": 3, "status": "paid", "tenant": 4},
        {"id": 4, "status": None, "tenant": 7},
    ]
    rig.produce(*(record(Change(row)) for row in rows))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "status": "paid"}]
    rig.produce(*(record(Change(row | {"tenant": 7}, UPDATE_AFTER)) for row in rows[2:]))
    rig.produce(record(Change(rows[0] | {"status": "draft"}, UPDATE_AFTER)))
    rig.run()
    assert rig.rows("orders") == [{"id": 3, "status": "paid"}]


def test_deleted_rows_stay_as_the_page_says(tmp_path: Path, json_changes: JsonChanges) -> None:
    rig = rig_of("# deletes.yaml", tmp_path)
    rig.produce(*(record(Change({"id": number, "status": "paid"})) for number in (1, 2)))
    rig.run()
    rig.produce(*(record(Change({"id": number}, DELETE)) for number in (1, 2, 3)))
    rig.run()
    found = [
        (row["id"], row["status"], row["deleted_at"].microsecond) for row in rig.rows("orders")
    ]
    assert found == [(1, "paid", 2000), (2, "paid", 3000)]
    rig.produce(record(Change({"id": 2, "status": "new"})))
    rig.run()
    assert rig.rows("orders")[1] == {"id": 2, "status": "new", "deleted_at": None}


def test_functions_give_what_the_page_says(
    tmp_path: Path, json_changes: JsonChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSON_KEY", "key")
    rig = rig_of("# functions.yaml", tmp_path)
    row = {
        "id": 1,
        "email": "ann@Example.org",
        "phone": "+49 30 1234",
        "settings": '{"plan": {"name": "free"}}',
        "country": None,
    }
    rig.produce(record(Change(row | {"country": "de"}, table="customers")))
    rig.run()
    rig.produce(record(Change(row, UPDATE_AFTER, table="customers")))
    rig.run()
    assert rig.rows("customers") == [
        {
            "id": 1,
            "person": hmac.new(b"key", b"ann@Example.org", "sha256").hexdigest(),
            "masked": "+** ** ****",
            "domain": "example.org",
            "plan": "free",
            "country_known": "no",
        }
    ]


class HeaderRig(Rig):
    """A rig whose records have headers."""

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        """Records of a range in chunks of three."""
        for chunk in super().fetch(source, wanted):
            count = len(chunk.offsets)
            headers: list[list[tuple[str, bytes | None]] | None] = [[("trace-id", b"t1")]] * count
            yield replace(chunk, headers=headers, timestamp_types=[2] * count)


def test_headers_are_in_the_columns_that_the_page_says(
    tmp_path: Path, json_changes: JsonChanges
) -> None:
    plain = rig_of("# headers.yaml", tmp_path)
    rig = HeaderRig(settings=plain.settings, defaults=plain.defaults)
    rig.produce(record(Change({"id": 1, "sign": "AB"})))
    rig.run()
    assert rig.rows("orders") == [
        {
            "id": 1,
            "kafka_timestamp_type": "LogAppendTime",
            "kafka_trace-id": "t1",
            "kafka_headers": [("trace-id", b"t1")],
            "signature": "4142",
        }
    ]


@pytest.fixture
def json_changes(monkeypatch: pytest.MonkeyPatch) -> JsonChanges:
    """The data format of the rig."""
    shared = JsonChanges()
    monkeypatch.setattr("ingestd.ingest.stages.decode_stage.shared_data_format", lambda *_: shared)
    return shared

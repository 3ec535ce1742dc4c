"""A format that is added by one file and one line works wherever formats are used."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingestd.cdc import base
from ingestd.cdc.base import FormatSettings, RecordChunk, format_descriptors, load_data_format
from ingestd.cdc.columns.type_mapping import TO_STRING, read_type_mapping
from ingestd.cdc.format_guess import Guess, guess_format
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.native_module import native_module
from ingestd.cli.broker_survey import BrokerSurvey, proposed_sources
from ingestd.cli.sampled_dry_run import TopicLogs
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.dry_run.dry_run import run_dry
from ingestd.ingest.settings.context import RoutingConfig, SourceSettings, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.batch_times import EventSpan
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.catalog.dry_run_catalog import DryRunCatalog
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.spec.data_types import RowKind
from tests.support.cdc_samples import decoded, samples
from tests.support.command_line import run_command
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.unit.cdc import toy_format

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.DATA_FORMATS, "toy", toy_format.__name__)


def message(row: int, do: str = "put", **more: Any) -> bytes:
    return json.dumps({"toy": "cars", "do": do, "at": row, "row": {"id": row, **more}}).encode()


def chunk(*values: bytes | None) -> RecordChunk:
    offsets = np.arange(len(values), dtype=np.int64)
    return RecordChunk("t", 0, offsets, offsets, [None] * len(values), list(values), None)


def test_a_batch_has_its_rows_dead_letters_and_event_times() -> None:
    shape = ShapeSettings(metadata={"op_ts": "op_ts"})
    rig = Rig(data_format="toy", defaults=TableSettings(shape=shape))
    rig.produce(message(1), message(2, name="x"), b'{"toy": "cars", "do": "melt", "row": {}}')
    times = rig.run().times
    rows = rig.rows("cars", "id", "name")
    assert rows == [{"id": 1, "name": None}, {"id": 2, "name": "x"}]
    stamps = [row["op_ts"].timestamp() for row in rig.rows("cars", "op_ts")]
    assert sorted(stamps) == [1, 2]
    assert times.events == {"lake.cars": EventSpan(1000, 2000)}
    (letter,) = rig.rows(DEAD_LETTERS.removeprefix("lake."), "reason", "value")
    assert letter["reason"] == "unknown-op"


def test_uniform_chunks_are_read_natively_with_the_same_rows() -> None:
    decoder = load_data_format("toy")
    first = decoder.decode(chunk(message(1), message(2)), {}, {})
    second = decoder.decode(chunk(message(3), message(2, "drop")), {}, {})
    assert first.batches[0].columns.to_pylist() == [{"id": 1}, {"id": 2}]
    assert second.batches[0].row_kind.tolist() == [RowKind.INSERT, RowKind.DELETE]
    assert second.batches[0].columns.to_pylist() == [{"id": 3}, {"id": 2}]


@pytest.mark.skipif(native_module() is None, reason="the native reader is not installed")
def test_its_layout_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    original = JsonChanges._read_natively

    def noted(self: JsonChanges, *given: Any) -> Any:
        read.append(original(self, *given))
        return read[-1]

    monkeypatch.setattr(JsonChanges, "_read_natively", noted)
    decoder = load_data_format("toy")
    decoder.decode(chunk(message(1), message(2)), {}, {})
    decoder.decode(chunk(message(3), message(2, "drop")), {}, {})
    assert read
    assert read[-1] is not None


def test_parse_shows_its_rows(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_bytes(message(7) + b"\n")
    done = run_command(capsys, "parse", "--format", "toy", file, "--json")
    (table,) = json.loads(done.out)["tables"]
    assert (table["source"]["table"], table["rows"][0]["values"]) == ("cars", {"id": 7})


def test_init_recognises_it() -> None:
    guess = guess_format([message(1), message(2), b'{"id": 1}'])
    assert guess == Guess("toy", 2, 3)
    (source,) = proposed_sources("s", BrokerSurvey(TopicLogs({}, {}), {"t": guess}), None, None)
    assert source.data_format == "toy"


def test_a_configuration_may_name_it(tmp_path: Path) -> None:
    file = tmp_path / "ingestd.yaml"
    file.write_text(
        "pipeline: {name: p}\n"
        f"warehouse: {{path: '{tmp_path}'}}\n"
        "sources: {s: {kafka: {bootstrap.servers: 'x:1'}, topics: [t], format: toy,\n"
        "  type-mapping: [to-string], schema-registry: {url: 'http://x'}}}\n"
    )
    (source,) = pipeline_settings(load_config(file)).sources.values()
    assert (source.data_format, source.format_settings.type_mapping) == ("toy", {TO_STRING})
    with pytest.raises(ConfigError, match="has no effect on toy"):
        read_type_mapping(["tinyint1-not-bool"], "toy")


def test_schema_ids_before_its_messages_are_removed() -> None:
    class Schemas:
        def find(self, schema_id: int | str) -> None:
            return None

        def earlier(self, schema_id: int | str) -> tuple[()]:
            return ()

    decoder = load_data_format("toy", FormatSettings(schemas=Schemas()))
    found = decoder.decode(chunk(b"\0\0\0\0\5" + message(1)), {}, {})
    assert found.batches[0].columns.to_pylist() == [{"id": 1}]


def test_a_dry_run_previews_its_tables(tmp_path: Path) -> None:
    pipeline = PipelineSettings(
        name="job",
        warehouse=str(tmp_path),
        metastore="filesystem",
        database="ods",
        sources={"s": SourceSettings(KafkaSource("s", ()), "toy")},
        max_offsets_per_trigger={},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
    )
    catalog = DryRunCatalog(load_catalog("filesystem", str(tmp_path)))
    registry = TableRegistry(pipeline, catalog, LocalFileIO(sync=False), lambda: 1)
    registry.open()
    sample = {OffsetRange("s", "t", 0, 0, 2): [chunk(message(1), message(2, name="x"))]}
    found = run_dry(registry, sample, slots=1, now_ms=lambda: 1)
    assert found.passed
    assert found.after["ods.cars"].field_names == ("id", "name")


def test_names_and_fallbacks_of_descriptors_are_unambiguous() -> None:
    described = format_descriptors()
    assert [one.name for one in described] == list(base.DATA_FORMATS)
    fallbacks = sorted(one.fallback for one in described if one.fallback)
    assert fallbacks == ["bytes", "object"]


@pytest.mark.parametrize("sample", samples(), ids=lambda one: one.name)
def test_messages_contain_only_what_their_descriptor_declares(sample: Any) -> None:
    descriptor = base.describe_format(sample.format)
    found = decoded(sample)
    assert descriptor.truncates or not found.truncates
    assert descriptor.schema_changes or not found.schema_changes
    has_position = any((batch.position != base.UNKNOWN_POSITION).any() for batch in found.batches)
    assert descriptor.source_position or not has_position

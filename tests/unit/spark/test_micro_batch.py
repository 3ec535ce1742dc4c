"""What a batch tells its listener, run in one process without Spark."""

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.ingest.batch_events import BatchSummary
from ingestd.ingest.settings.error_policy import UnreadablePolicy
from ingestd.ingest.settings.pipeline_settings import BatchLimits
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.ingest.settings.wrong_format import WrongFormatThreshold
from ingestd.ingest.tables import table_registry
from ingestd.log import event_fields
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.spark.micro_batch import MicroBatch
from ingestd.spark.prefetch import Prefetch
from tests.support import crash_scene
from tests.support.stored_rows import stored_rows


def test_a_batch_shows_when_its_changes_were_made_and_what_feeds_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_errors: list[BatchSummary] = []
    monkeypatch.setattr(
        crash_scene._Silent, "batch_finished", lambda _, summary: client_errors.append(summary)
    )
    crash_scene.Scene(tmp_path, "keyed").live()
    assert len(client_errors) == crash_scene.BATCHES
    for summary in client_errors:
        assert summary.topics[crash_scene.TABLE] == {("src", crash_scene.TOPIC)}
        assert {where.partition for where in summary.times.reached} == {0, 1}
        for where, (offset, _) in summary.times.reached.items():
            assert offset < summary.until["src"][crash_scene.TOPIC][where.partition]
    spans = [summary.times.events[crash_scene.TABLE] for summary in client_errors]
    assert all(span.oldest <= span.newest for span in spans)
    assert [span.oldest for span in spans] == sorted({span.oldest for span in spans})


def test_the_first_error_is_reported_whatever_a_jvm_that_is_gone_makes_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(_: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(Prefetch, "forget", gone)
    nothing: Any = None
    settings: Any = SimpleNamespace(
        rejection_limits=RejectionLimits(),
        wrong_format_threshold=WrongFormatThreshold(),
        unreadable=UnreadablePolicy(),
        limits=BatchLimits(),
        worker_memory=0,
        watermark_rules=lambda _: None,
    )
    batch = MicroBatch(nothing, settings, nothing, {}.__getitem__, nothing, nothing)
    with pytest.raises(KeyError) as caught:
        batch.run(7)
    assert caught.value.args == (7,)
    assert isinstance(caught.value.__context__, ConnectionResetError)


class Lines(logging.Handler):
    """Fields of lines, as the thread that logs has them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[tuple[str, Mapping[str, object]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.fields.append((record.getMessage(), event_fields(record)))


def committed(scene: crash_scene.Scene, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Tables and batch ids on the lines that are logged in the commits of a scene."""
    told, commit = Lines(), table_registry.commit

    def loud(*arguments: Any, **named: Any) -> Any:
        logging.getLogger("ingestd.test").warning("committing")
        return commit(*arguments, **named)

    logging.getLogger().addHandler(told)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(table_registry, "commit", loud)
            scene.live()
    finally:
        logging.getLogger().removeHandler(told)
    lines = [fields for event, fields in told.fields if event == "committing"]
    return [(str(line["table"]), str(line["batch_id"])) for line in lines]


def test_what_a_commit_logs_names_its_table_and_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = committed(crash_scene.Scene(tmp_path, "keyed"), monkeypatch)
    numbers = {(table, int(batch.rpartition("-")[2])) for table, batch in commits}
    assert {(crash_scene.TABLE, batch) for batch in range(crash_scene.BATCHES)} <= numbers
    assert len(set(commits)) == len(commits)


def test_the_same_number_of_two_queries_names_two_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark counts from 0 again with each query."""
    scenes = [crash_scene.Scene(tmp_path / name, "keyed") for name in ("first", "second")]
    first, second = ({batch for _, batch in committed(scene, monkeypatch)} for scene in scenes)
    assert not first & second
    assert all(re.fullmatch(r"\d{8}T\d{6}\.\d{3}Z-\d+", batch) for batch in first | second)


def test_a_column_that_another_program_added_before_its_first_record_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, made = crash_scene.Scene(tmp_path, "keyed"), crash_scene.record
    altered: list[FileStoreTable] = []

    def with_extra(*given: Any) -> tuple[bytes | None, bytes]:
        key, value = made(*given)
        if altered and value.startswith(b'{"before"'):
            event = json.loads(value)
            event["after"] = event["after"] and {**event["after"], "extra": "new"}
            value = json.dumps(event).encode()
        return key, value

    def alter(*_: object) -> None:
        if not altered:
            name, column = Identifier.parse(crash_scene.TABLE), parse_type("STRING")
            altered.append(scene.catalog.alter_table(name, [AddColumn("extra", column)], 0))

    monkeypatch.setattr(crash_scene, "record", with_extra)
    monkeypatch.setattr(crash_scene._Silent, "batch_finished", alter)
    scene.live()
    assert scene.table().schema.id == altered[0].schema.id
    assert "new" in {row["extra"] for row in stored_rows(scene.table())}

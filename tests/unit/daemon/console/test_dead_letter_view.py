"""Dead letters as the warehouse has them, so also those of earlier processes."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from ingestd.cdc.base import RejectedRecord
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.console.table_details import DetailsReader
from ingestd.daemon.http_server import dead_letters_page
from ingestd.daemon.status import Status
from ingestd.ingest.dead_letters.dead_letter import (
    COLUMNS,
    DeadLetter,
    dead_letter_rows,
    dead_letter_schema,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.pipeline_warehouse import open_catalog
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.unit.daemon.console.test_views import Outline

CONFIG = """
pipeline: {name: shop}
warehouse: {path: my lake, database: ods}
sources:
  s: {kafka: {bootstrap.servers: "127.0.0.1:1"}, topics: [a], format: debezium-json}
"""


@pytest.fixture
def settings(tmp_path: Path) -> PipelineSettings:
    (tmp_path / "shop.yaml").write_text(CONFIG)
    return pipeline_settings(load_config(tmp_path / "shop.yaml"))


def letter(offset: int, **changes: Any) -> DeadLetter:
    fields: dict[str, Any] = {
        "topic": "a b", "partition": 3, "offset": offset, "timestamp": 1_700_000_000_000 + offset,
        "stage": "decode", "reason": "invalid-json", "message": "no <JSON>", "key": None,
        "value": b"\xff\x00", **changes,
    }  # fmt: skip
    return DeadLetter(RejectedRecord(**fields), "ods.t")


def write(settings: PipelineSettings, *batches: list[DeadLetter]) -> None:
    catalog = open_catalog(settings)
    identifier = Identifier.parse(settings.dead_letters)
    catalog.create_table(identifier, dead_letter_schema(0))
    table = catalog.get_table(identifier)
    for number, letters in enumerate(batches):
        rows = dead_letter_rows("job", "s", letters).select([name for name, _ in COLUMNS])
        message = write_bucket(table, EMPTY_ROW, 0, rows, new_name=data_file_names(table))
        committable = ManifestCommittable(number, (message,))
        commit(table, "writer", committable, state=load_state(table), now_ms=0)


def page(settings: PipelineSettings, *, with_bytes: bool) -> Outline:
    reader = DetailsReader(settings, config="/etc/shop.yaml")
    response = dead_letters_page(Status("shop", "1", ["s"]), reader, with_bytes=with_bytes)
    outline = Outline(response.body.decode())
    assert outline.open == []
    return outline


def test_a_pipeline_without_dead_letters_has_a_page(settings: PipelineSettings) -> None:
    assert "none" in page(settings, with_bytes=True).of("p")


def test_letters_of_earlier_processes_are_there_with_the_command_that_replays_each(
    settings: PipelineSettings,
) -> None:
    old = [letter(n) for n in range(200)]
    new = [letter(1000), letter(1001, stage="cast", reason="overflow", value=b'{"id": 1}')]
    write(settings, old, new)
    shown = page(settings, with_bytes=True)
    assert shown.of("h2") == ["Dead letters by reason, the newest 202 of 202",
                              "The newest 50 dead letters"]  # fmt: skip
    assert {"201", "1", "no <JSON>", "cast: overflow", "ods.t"} <= set(shown.of("td"))
    value, key, command = shown.of("pre")[1], shown.of("pre")[0], shown.of("pre")[2]
    assert (value, key) == ('{"id": 1}', "null")
    words = shlex.split(command)
    assert words[:3] == ["ingestd", "dlq", "replay"]
    assert words[3].endswith("/my lake")
    assert words[4:] == ["ods.ingestd_dead_letters", "--config", "/etc/shop.yaml",
                         "--topic", "a b", "--partition", "3", "--offset", "1001"]  # fmt: skip
    assert "ff00" in shown.of("pre")


def test_without_a_token_no_bytes_of_records_are_shown(settings: PipelineSettings) -> None:
    write(settings, [letter(1, value=b'{"card": "4111"}')])
    shown = page(settings, with_bytes=False)
    assert len(shown.of("pre")) == 1, "only the command"
    assert "http.auth-file" in shown.of("code")
    assert not [text for _, text in shown.texts if "4111" in text]


def test_a_table_that_cannot_be_read_is_reported(settings: PipelineSettings) -> None:
    write(settings, [letter(1)])
    lake = Path(settings.warehouse)
    for file in lake.glob("ods.db/ingestd_dead_letters/manifest/manifest-*"):
        file.write_bytes(b"damage")
    assert any("manifest" in text for text in page(settings, with_bytes=True).of("li"))

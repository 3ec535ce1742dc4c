"""What the console reads from the warehouse, and the command that it shows for dead letters."""

from pathlib import Path

import pytest

from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.console.table_details import DetailsReader

TEXT = """
warehouse: {{path: /lake, database: ods, catalog: {catalog}}}
sources:
  shop: {{kafka: {{bootstrap.servers: "127.0.0.1:1"}}, topics: [a], format: debezium-json}}
"""


@pytest.mark.parametrize(
    ("catalog", "command"),
    [
        ("{}", "/lake ods.ingestd_dead_letters --config my.yaml"),
        (
            "{metastore: jdbc, uri: 'jdbc:sqlite:/c.db'}",
            "/lake ods.ingestd_dead_letters --config my.yaml --metastore jdbc "
            "--uri jdbc:sqlite:/c.db",
        ),
        (
            "{metastore: rest, uri: 'http://c:1', warehouse: lake, token: geheim-geheim}",
            "lake ods.ingestd_dead_letters --config my.yaml --metastore rest --uri http://c:1",
        ),
    ],
)
def test_the_command_of_a_replay_names_the_catalog_and_no_secret(
    tmp_path: Path, catalog: str, command: str
) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(TEXT.format(catalog=catalog))
    reader = DetailsReader(pipeline_settings(load_config(file, {})), config="my.yaml")
    assert reader.replay_command() == f"ingestd dlq replay {command}"

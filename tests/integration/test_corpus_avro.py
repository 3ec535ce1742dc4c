"""Captured Avro streams, with a registry process, end in what the database itself ended in."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import captured_avro, corpus, state
from tests.support.daemon import catch_up
from tests.support.oracle import Oracle
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration

TABLES = sorted(state.database_tables())


def configuration(
    mode: corpus.Mode, registry: RegistryServer, broker: DevBroker, folder: Path
) -> dict[str, Any]:
    replayed = corpus.replay(mode, broker.bootstrap)
    return {
        "pipeline": {"name": "corpus", "trigger": "0s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": sorted(replayed.topics.values()),
                "format": "debezium-avro",
                "schema-registry": {"url": registry.url},
            }
        },
        "defaults": {"options": {"bucket": "-1"}},
    }


def as_named_in_the_database(
    table: str, rows: list[dict[str, Any]], types: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Avro has no names such as "Full Name"; the connector writes Full_Name."""
    names = {re.sub(r"\W", "_", n, flags=re.A): n for n in state.database_tables()[table].types}
    renamed = [{names.get(n, n): value for n, value in row.items()} for row in rows]
    return renamed, {names.get(n, n): kind for n, kind in types.items()}


@pytest.mark.parametrize("mode", corpus.AVRO_MODES)
def test_every_table_equals_the_database(
    mode: corpus.Mode, broker: DevBroker, tmp_path: Path, oracle: Oracle
) -> None:
    with RegistryServer(captured_avro.REGISTRY, fail_first=3) as registry:
        catch_up(configuration(mode, registry, broker, tmp_path), tmp_path)
        asked = registry.hits
    assert asked and max(asked.values()) <= 20
    warehouse = tmp_path / "warehouse"
    repeats = captured_avro.repeated_inserts(mode)
    problems = []
    for name in TABLES:
        table = name.split(".")[1]
        problems += [f"{table}: {found}" for found in oracle.fsck(warehouse, "ods", table, "--all")]
        rows = [json.loads(line) for line in oracle.read_lines(warehouse, "ods", table)]
        types = state.column_types(warehouse, "ods", table)
        rows, types = as_named_in_the_database(name, rows, types)
        problems += state.compare(name, rows, types, repeats=repeats.get(name))
    assert problems == []
    assert list((warehouse / "ods.db/ingestd_dead_letters").rglob("data-*")) == []

"""Captured change streams of a real database end in what the database itself ended in."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import corpus, state
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.declared import declared_types
from tests.support.oracle import Oracle
from tests.support.pypaimon import Pypaimon

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TABLES = sorted(state.database_tables())
# Plain JSON does not tell that bytes are bits, so a declared BYTES keeps the order on the wire.
BITS_AS_SENT = "shop.types_all [3] c_varbit bit varying(12): wanted '111111111111', got 'ff0f'"


def configuration(
    mode: corpus.Mode,
    bucket: str,
    broker: DevBroker,
    folder: Path,
    *,
    declare: bool,
    limit: int = 500_000,
) -> dict[str, Any]:
    prefix = f"{mode}{bucket}{declare}".lower()
    replayed = corpus.replay(mode, broker.bootstrap, prefix=prefix)
    tables: dict[str, Any] = {"audit_log": {"options": {"bucket": "-1"}}}
    if declare:
        for name in TABLES:
            types = declared_types(name)
            tables.setdefault(name.split(".")[1], {})["schema"] = {"column-types": types}
    return {
        "pipeline": {"name": "corpus", "trigger": "0s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": sorted(replayed.topics.values()),
                "format": "debezium-json",
                "max-offsets-per-trigger": limit,
            }
        },
        "defaults": {"options": {"bucket": bucket}},
        "tables": tables,
    }


# What a bucket is made of does not depend on what a message was wrapped in.
@pytest.mark.parametrize(("mode", "bucket"), [("json", "3"), ("json-schema", "-1")])
def test_every_table_equals_the_database(
    mode: corpus.Mode,
    bucket: str,
    broker: DevBroker,
    tmp_path: Path,
    oracle: Oracle,
    pypaimon: Pypaimon,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = configuration(
        mode,
        bucket,
        broker,
        tmp_path,
        declare=mode == "json",
        limit=400 if bucket == "3" else 500_000,
    )
    catch_up(config, tmp_path)
    warehouse = tmp_path / "warehouse"
    repeats = corpus.repeated_inserts(mode)
    problems = []
    for name in TABLES:
        table = name.split(".")[1]
        problems += [f"{table}: {found}" for found in oracle.fsck(warehouse, "ods", table, "--all")]
        lines = oracle.read_lines(warehouse, "ods", table)
        own = run_command(capsys, "read", warehouse, f"ods.{table}", "--format", "jsonl")
        assert own.code == 0, own.err
        if own.out.splitlines() != lines:
            problems.append(f"{table}: ingestd read differs from Java")
        assert pypaimon.read(warehouse, "ods", table).num_rows == len(lines)
        rows = [json.loads(line) for line in lines]
        types = state.column_types(warehouse, "ods", table)
        problems += state.compare(name, rows, types, repeats=repeats.get(name))
    assert problems == ([BITS_AS_SENT] if mode == "json" else [])


def test_without_envelope_and_declared_types_rows_are_right_and_values_as_they_came(
    broker: DevBroker, tmp_path: Path, oracle: Oracle
) -> None:
    config = configuration("json", "-1", broker, tmp_path, declare=False)
    catch_up(config, tmp_path)
    folded = corpus.folded("json")
    problems = []
    for name in TABLES:
        key = state.database_tables()[name].key
        if key:
            rows = oracle.read(tmp_path / "warehouse", "ods", name.split(".")[1])
            problems += state.compare_as_it_came(name, key, folded[name], rows)
    assert problems == []

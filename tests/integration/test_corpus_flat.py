"""Flattened rows of a real database end in what the database itself ended in."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import corpus, state
from tests.support.daemon import catch_up
from tests.support.declared import declared_types
from tests.support.oracle import Oracle

pytestmark = pytest.mark.integration

# The connector writes NaN so where decimals are text; nothing tells that bytes are bits.
AS_SENT = [
    "shop.types_all [2] c_num numeric: wanted 'NaN', got 'NAN'",
    "shop.types_all [3] c_varbit bit varying(12): wanted '111111111111', got 'ff0f'",
]
ROWS_BEFORE_TRUNCATE = 12
TABLES = sorted(state.database_tables())


def configuration(broker: DevBroker, folder: Path) -> dict[str, Any]:
    replayed = corpus.replay("flat", broker.bootstrap)
    tables: dict[str, Any] = {"audit_log": {"options": {"bucket": "-1"}}}
    for name in TABLES:
        types = declared_types(name)
        tables.setdefault(name.split(".")[1], {})["schema"] = {"column-types": types}
    return {
        "pipeline": {"name": "flat", "trigger": "0s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": sorted(replayed.topics.values()),
                "format": "debezium-flat-json",
            }
        },
        "tables": tables,
    }


def test_every_table_equals_the_database(tmp_path: Path, broker: DevBroker, oracle: Oracle) -> None:
    catch_up(configuration(broker, tmp_path), tmp_path)
    warehouse = tmp_path / "warehouse"
    problems = []
    for name in TABLES:
        table = name.split(".")[1]
        problems += [f"{table}: {found}" for found in oracle.fsck(warehouse, "ods", table, "--all")]
        rows = [json.loads(line) for line in oracle.read_lines(warehouse, "ods", table)]
        types = state.column_types(warehouse, "ods", table)
        problems += state.compare(name, rows, types)
    # The transform dropped the one TRUNCATE, of cart: what was in it before is left over.
    emptied = [
        problem
        for problem in problems
        if problem.startswith("shop.cart") and problem.endswith("left over")
    ]
    assert len(emptied) == ROWS_BEFORE_TRUNCATE
    assert [problem for problem in problems if problem not in emptied] == AS_SENT

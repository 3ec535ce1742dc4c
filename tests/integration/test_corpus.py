"""Captured change streams of a real database end in what the database itself ended in.

One daemon reads all captures at once: a topic in each of the formats for each table, into tables
whose names begin with the capture's.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import captured_avro, corpus, state
from tests.support.command_line import run_command
from tests.support.daemon import catch_up
from tests.support.declared import declared_types
from tests.support.oracle import Oracle
from tests.support.pypaimon import Pypaimon
from tests.support.registry_server import RegistryServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TABLES = sorted(state.database_tables())
# Plain JSON does not tell that bytes are bits, so a declared BYTES keeps the order on the wire.
BITS_AS_SENT = "shop.types_all [3] c_varbit bit varying(12): wanted '111111111111', got 'ff0f'"
# The connector writes NaN so where decimals are text.
NAN_AS_SENT = "shop.types_all [2] c_num numeric: wanted 'NaN', got 'NAN'"
ROWS_BEFORE_TRUNCATE = 12
"""Of cart: the transform that flattens messages dropped its one TRUNCATE."""


@dataclass(frozen=True)
class Capture:
    """A capture, how it is read, and the differences from the database that its format explains."""

    name: str
    mode: corpus.Mode
    format: str = "debezium-json"
    bucket: str = "-1"
    declare: bool = False
    batch_records: int = 500_000
    as_sent: tuple[str, ...] = ()


AVRO = [Capture(mode.replace("-", "_"), mode, "debezium-avro") for mode in corpus.AVRO_MODES]
UNDECLARED = Capture("undeclared", "json")
CAPTURES = (
    # What a bucket is made of does not depend on what a message was wrapped in.
    Capture("many_batches", "json", "debezium-json", "3", True, 400, (BITS_AS_SENT,)),
    Capture("with_schema", "json-schema"),
    Capture("flat", "flat", "debezium-flat-json", "2", True, as_sent=(NAN_AS_SENT, BITS_AS_SENT)),
    *AVRO,
)


def configuration(registry: RegistryServer, broker: DevBroker, folder: Path) -> dict[str, Any]:
    sources, rules, tables = {}, [], {}
    for capture in (*CAPTURES, UNDECLARED):
        replayed = corpus.replay(capture.mode, broker.bootstrap, prefix=capture.name)
        sources[capture.name.replace("_", "-")] = {
            "kafka": {"bootstrap.servers": broker.bootstrap},
            "topics": sorted(replayed.topics.values()),
            "format": capture.format,
            "max-offsets-per-trigger": capture.batch_records,
        }
        if capture in AVRO:
            sources[capture.name.replace("_", "-")]["schema-registry"] = {"url": registry.url}
        rules.append({"match": {"topic": rf"{capture.name}\..*"}, "to": capture.name + "_${table}"})
        for name in TABLES:
            keyed = bool(state.database_tables()[name].key)
            table: dict[str, Any] = {"options": {"bucket": capture.bucket if keyed else "-1"}}
            if capture.declare:
                table["schema"] = {"column-types": declared_types(name)}
            tables[target(capture, name)] = table
    return {
        "pipeline": {"name": "corpus", "trigger": "0s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": sources,
        "routing": {"rules": rules},
        "tables": tables,
    }


def target(capture: Capture, table: str) -> str:
    return f"{capture.name}_{table.split('.')[1]}"


def test_every_table_of_every_format_equals_the_database(
    broker: DevBroker,
    tmp_path: Path,
    oracle: Oracle,
    pypaimon: Pypaimon,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with RegistryServer(captured_avro.REGISTRY, fail_first=3) as registry:
        catch_up(configuration(registry, broker, tmp_path), tmp_path)
        requests = registry.hits
    assert requests
    assert max(requests.values()) <= 20
    warehouse = tmp_path / "warehouse"
    for capture in CAPTURES:
        problems = []
        for name in TABLES:
            table = target(capture, name)
            findings = oracle.fsck(warehouse, "ods", table, "--all")
            problems += [f"{table}: {finding}" for finding in findings]
            lines = oracle.read_lines(warehouse, "ods", table)
            own = run_command(capsys, "read", warehouse, f"ods.{table}", "--format", "jsonl")
            assert own.code == 0, own.err
            assert own.out.splitlines() == lines, table
            assert pypaimon.read(warehouse, "ods", table).num_rows == len(lines), table
            problems += differences(capture, name, lines, warehouse)
        if capture.mode == "flat":
            before = [problem for problem in problems if before_truncate(problem)]
            assert len(before) == ROWS_BEFORE_TRUNCATE
            problems = [problem for problem in problems if problem not in before]
        assert tuple(problems) == capture.as_sent, capture.name
    assert list(undeclared_differences(warehouse, oracle)) == []
    dead_letters = oracle.read(warehouse, "ods", "ingestd_dead_letters")
    avro_topics = tuple(f"{capture.name}." for capture in AVRO)
    assert [d for d in dead_letters if d["topic"].startswith(avro_topics)] == []


def differences(capture: Capture, name: str, lines: list[str], warehouse: Path) -> list[str]:
    rows = [json.loads(line) for line in lines]
    types = state.column_types(warehouse, "ods", target(capture, name))
    if capture in AVRO:
        rows, types = as_named_in_the_database(name, rows, types)
        repeats = captured_avro.repeated_inserts(capture.mode)
    else:
        repeats = {} if capture.mode == "flat" else corpus.repeated_inserts(capture.mode)
    return state.compare(name, rows, types, repeats=repeats.get(name))


def as_named_in_the_database(
    table: str, rows: list[dict[str, Any]], types: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Avro has no names such as "Full Name"; the connector writes Full_Name."""
    names = {re.sub(r"\W", "_", n, flags=re.A): n for n in state.database_tables()[table].types}
    renamed = [{names.get(n, n): value for n, value in row.items()} for row in rows]
    return renamed, {names.get(n, n): kind for n, kind in types.items()}


def before_truncate(problem: str) -> bool:
    return problem.startswith("shop.cart") and problem.endswith("left over")


def undeclared_differences(warehouse: Path, oracle: Oracle) -> Iterator[str]:
    """Without envelope and declared types rows are right, and values as they came."""
    folded = corpus.folded("json")
    for name in TABLES:
        key = state.database_tables()[name].key
        if key:
            rows = oracle.read(warehouse, "ods", target(UNDECLARED, name))
            yield from state.compare_as_it_came(name, key, folded[name], rows)

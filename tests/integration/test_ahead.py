"""A backlog is read ahead batch by batch, and the tables are what they are without that.

A real receiver of OTLP over HTTP gets a trace of each batch.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import Identifier, load_catalog
from tests.support.change_events import event, key
from tests.support.daemon import catch_up
from tests.support.kafka_broker import Record, fresh_topic, produce
from tests.support.otlp_receiver import OtlpReceiver, values
from tests.support.pipelines import DATABASE, pipeline
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

BATCH = 400
RECORDS = 8 * BATCH
GROWN_AT, TWIN_AT, BROKEN_AT = 3 * BATCH + 50, 5 * BATCH + 70, 6 * BATCH + 90
TWIN = SourceTable("shopdb", "public", "twins")


def row(number: int) -> dict[str, Any]:
    """What a record says; from some number on it has a column more."""
    more = {"note": f"n{number}"} if number >= GROWN_AT else {}
    return {"id": number % 700, "n": number, **more}


def record(number: int) -> Record:
    """A change of one table, later now and then of another, and once of none."""
    if number == BROKEN_AT:
        return key(id=number), b"no event"
    if number >= TWIN_AT and number % 5 == 0:
        return key(id=number), event("c", {"id": number}, table=TWIN)
    return key(id=number % 700), event("c", row(number))


def told(log: Path, name: str) -> list[dict[str, Any]]:
    """The lines of a daemon's log about an event."""
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    return [one for one in map(json.loads, lines) if one["event"] == name]


def test_a_backlog_with_a_new_column_and_a_new_table_is_read_ahead(
    tmp_path: Path, broker: DevBroker
) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, map(record, range(RECORDS)))
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        topic,
        batch_rows=BATCH,
        processing={"small-batch-records": 10},
        logging={"format": "json", "level": "DEBUG"},
    )
    with OtlpReceiver() as receiver:
        config["telemetry"] = {"traces": "otlp", "endpoint": receiver.endpoint}
        log = catch_up(config, tmp_path).log
        check_traces(receiver)
    batches = [one for one in told(log, "batch_finished") if one["records"]]
    assert [batch["records"] for batch in batches] == [BATCH] * 8
    assert sum(batch["rejected"] for batch in batches) == 1
    # The first batch has no batch before it, and the last one is not full.
    assert 4 <= len(told(log, "prefetch_used")) <= 7
    assert len(told(log, "schema_changed")) == 1

    catalog = load_catalog("filesystem", str(tmp_path / "warehouse"))
    tables = {
        name: stored_rows(catalog.get_table(Identifier(DATABASE, name)))
        for name in ("orders", "twins", "ingestd_dead_letters")
    }
    twins = [number for number in range(TWIN_AT, RECORDS) if number % 5 == 0]
    twins = [number for number in twins if number != BROKEN_AT]
    assert sorted(one["id"] for one in tables["twins"]) == twins
    orders = {
        row(number)["id"]: {"note": None, **row(number)}
        for number in range(RECORDS)
        if number not in twins and number != BROKEN_AT
    }
    assert {order["id"]: order for order in tables["orders"]} == orders
    assert len(tables["orders"]) == len(orders)
    assert [dead_letter["offset"] for dead_letter in tables["ingestd_dead_letters"]] == [BROKEN_AT]


def check_traces(receiver: OtlpReceiver) -> None:
    """Each batch is a trace with its phases, and with the commit of each table."""
    batches = receiver.named("batch")
    records = [values(batch.attributes)["ingestd.batch.records"] for batch in batches]
    assert sum(int(str(number)) for number in records) == RECORDS
    assert receiver.resources[0]["ingestd.pipeline"] == "shop"
    committed = set()
    for batch in batches:
        phases = {phase.name: phase for phase in receiver.children(batch)}
        tables = receiver.children(phases["commit"]) if "commit" in phases else []
        committed |= {str(values(table.attributes)["ingestd.table"]) for table in tables}
        if batch is batches[0]:
            assert {"stages", "evolve", "commit", "claims"} <= phases.keys()
        pairs = [(phase, batch) for phase in phases.values() if phase.name == "commit"]
        for inner, outer in [*pairs, *((table, phases["commit"]) for table in tables)]:
            assert outer.start_time_unix_nano <= inner.start_time_unix_nano
            assert inner.end_time_unix_nano <= outer.end_time_unix_nano
    assert {f"{DATABASE}.orders", f"{DATABASE}.twins"} <= committed

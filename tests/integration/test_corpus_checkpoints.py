"""Captured change streams pass through every state that the database itself passed through."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import canonical, canonical_mysql, corpus, declared, state
from tests.support.connect_cells import sent_by_connect
from tests.support.daemon import run_daemon
from tests.support.kafka_broker import backlog
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.integration, pytest.mark.slow]


SAME: Mapping[tuple[Path, corpus.Mode], state.Same] = {
    (corpus.SHOP, "json-schema"): canonical.same,
    (corpus.SHOP, "json-connect"): sent_by_connect(canonical.same),
    (corpus.MART, "json"): canonical_mysql.same_as_sent,
    (corpus.MART, "json-schema"): canonical_mysql.same,
    (corpus.MART, "json-connect"): sent_by_connect(canonical_mysql.same_as_sent),
}


# The connector writes NaN so where decimals are text, and nothing tells that bytes are bits. In a
# table without a key an update and a delete cannot be applied: they are among the dead letters.
AS_SENT = {
    (corpus.SHOP, "json-connect"): {
        "shop.types_all [2] c_num numeric: wanted 'NaN', got 'NAN'",
        "shop.types_all [3] c_varbit bit varying(12): wanted '111111111111', got 'ff0f'",
    },
    **{
        (corpus.MART, mode): {
            'martdb.nopk {"k": 2, "v": "u"}: missing',
            'martdb.nopk {"k": 2, "v": null}: left over',
            'martdb.nopk {"k": 1, "v": "a"}: left over',
        }
        for mode in ("json", "json-schema", "json-connect")
    },
}
RENAMED = {"c_renamed": "c"}


def configuration(
    home: Path, mode: corpus.Mode, replaying: corpus.Replaying, broker: DevBroker, folder: Path
) -> dict[str, Any]:
    """All topics of the capture, control topics among them; routing leaves out what is no table."""
    tables: dict[str, Any] = {}
    for moment in state.checkpoints(home) if mode != "json-schema" else ():
        for name, table in moment.tables.items():
            types = declared.types_of(table, mode)
            one = tables.setdefault(name.split(".")[1], {"schema": {"column-types": {}}})
            one["schema"]["column-types"] |= types
    if home == corpus.MART:
        tables.setdefault("goods", {}).setdefault("schema", {})["aliases"] = RENAMED
    for name, table in state.checkpoints(home)[-1].tables.items():
        if not table.key:
            tables.setdefault(name.split(".")[1], {})["options"] = {"bucket": "-1"}
    return {
        "pipeline": {"name": "corpus", "trigger": "0s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": {
            "capture": {
                "kafka": {"bootstrap.servers": broker.bootstrap, "group.id": replaying.prefix},
                "topics": sorted(replaying.topics.values()),
                "format": "debezium-json",
            }
        },
        "tables": tables,
    }


def until(
    records: list[corpus.Record], ends: Mapping[str, Mapping[str, int]]
) -> tuple[list[corpus.Record], list[corpus.Record]]:
    """Records before the end offsets, and the others."""
    before = {
        id(record)
        for record in records
        if record.offset < ends.get(record.topic, {}).get(str(record.partition), 0)
    }
    return (
        [record for record in records if id(record) in before],
        [record for record in records if id(record) not in before],
    )


@pytest.mark.parametrize(("home", "mode"), [*SAME], ids=lambda one: getattr(one, "name", one))
def test_every_state_equals_that_of_the_database(
    home: Path, mode: corpus.Mode, broker: DevBroker, tmp_path: Path, oracle: Oracle
) -> None:
    replaying = corpus.Replaying(mode, broker.bootstrap, prefix=f"{home.name}.{mode}", home=home)
    left = list(corpus.captured(mode, home))
    topics = sorted(replaying.topics.values())
    problems = []
    with run_daemon(configuration(home, mode, replaying, broker, tmp_path), tmp_path) as daemon:
        for moment in state.checkpoints(home):
            next_records, left = until(left, moment.ends[mode])
            replaying.produce(next_records)
            daemon.wait_until(lambda: backlog(broker, replaying.prefix, topics) == 0)
            found = differences(home, mode, moment, tmp_path / "warehouse", oracle)
            problems += [
                f"{moment.name}: {one}" for one in found if one not in AS_SENT.get((home, mode), ())
            ]
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail()
    known = {
        name.split(".")[1] for checkpoint in state.checkpoints(home) for name in checkpoint.tables
    }
    made = {path.name for path in (tmp_path / "warehouse" / "ods.db").iterdir()}
    assert made - {"ingestd_dead_letters"} <= known, "control topics are no tables"
    assert problems == []


def differences(
    home: Path, mode: corpus.Mode, moment: state.Checkpoint, warehouse: Path, oracle: Oracle
) -> list[str]:
    """What the tables have otherwise than the database had at the moment."""
    repeats = corpus.repeated_inserts(mode, home)
    problems = []
    for name, table in moment.tables.items():
        target = name.split(".")[1]
        if not table.rows and not (warehouse / "ods.db" / target).exists():
            continue  # no message has told of it yet
        rows = [json.loads(line) for line in oracle.read_lines(warehouse, "ods", target)]
        types = state.column_types(warehouse, "ods", target)
        for new, old in RENAMED.items():  # from the beginning, as it is declared
            if old in table.types:
                types[old] = types.pop(new, types.get(old))
                rows = [{**row, old: row.get(new, row.get(old))} for row in rows]
        lost = {**moment.losses, **defaults_of_new_columns(table)}
        told_twice = repeats.get(name)
        problems += state.differences(
            table, rows, types, repeats=told_twice, lost=lost, same=SAME[home, mode]
        )
    return problems


def defaults_of_new_columns(table: state.DatabaseTable) -> dict[state.Lost, Mapping[str, Any]]:
    """ADD COLUMN .. DEFAULT filled rows of which the stream says nothing afterwards."""
    filled = [row for row in table.rows if row.get("extra") == "x"]
    keys = [json.dumps([row[column] for column in table.key]) for row in filled]
    return {(table.name, key, "extra"): {"in_stream": None} for key in keys}

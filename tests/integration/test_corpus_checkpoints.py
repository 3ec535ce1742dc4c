"""Captured change streams pass through every state that the database itself passed through."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import canonical, canonical_mysql, corpus, declared, state
from tests.support.connect_cells import sent_by_connect
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
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


def target(home: Path, mode: corpus.Mode, table: str) -> str:
    return f"{home.name}_{mode}_{table}".replace("-", "_")


def configuration(
    replays: Mapping[tuple[Path, corpus.Mode], corpus.Replaying], broker: DevBroker, folder: Path
) -> dict[str, Any]:
    """All topics of all captures, with control topics, which routing leaves out."""
    return {
        "pipeline": {"name": "corpus", "trigger": "100ms"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "ods"},
        "sources": {
            f"{home.name}-{mode}": {
                "kafka": {"bootstrap.servers": broker.bootstrap, "group.id": replaying.prefix},
                "topics": sorted(replaying.topics.values()),
                "format": "debezium-json",
            }
            for (home, mode), replaying in replays.items()
        },
        "routing": {
            "rules": [
                {
                    "match": {"topic": rf"{re.escape(replaying.prefix)}(\..*)?"},
                    "to": target(home, mode, "${table}"),
                }
                for (home, mode), replaying in replays.items()
            ]
        },
        "tables": {
            target(home, mode, name): table
            for home, mode in replays
            for name, table in table_settings(home, mode).items()
        },
    }


def table_settings(home: Path, mode: corpus.Mode) -> dict[str, Any]:
    """Settings of the tables of a capture: declared types, a renamed column, no buckets."""
    tables: dict[str, Any] = {}
    for moment in state.checkpoints(home) if mode != "json-schema" else ():
        for name, table in moment.tables.items():
            types = declared.types_of(table, mode)
            settings = tables.setdefault(name.split(".")[1], {"schema": {"column-types": {}}})
            settings["schema"]["column-types"] |= types
    if home == corpus.MART:
        tables.setdefault("goods", {}).setdefault("schema", {})["aliases"] = RENAMED
    for name, table in state.checkpoints(home)[-1].tables.items():
        if not table.key:
            tables.setdefault(name.split(".")[1], {})["options"] = {"bucket": "-1"}
    return tables


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


def test_every_state_equals_that_of_the_database(
    broker: DevBroker, tmp_path: Path, oracle: Oracle
) -> None:
    """One daemon reads all captures, each in steps of its checkpoints, one after the other."""
    replays = {
        (home, mode): corpus.Replaying(
            mode, broker.bootstrap, prefix=f"{home.name}.{mode}", home=home
        )
        for home, mode in SAME
    }
    problems = []
    known = set()
    with run_daemon(configuration(replays, broker, tmp_path), tmp_path) as daemon:
        for (home, mode), replaying in replays.items():
            reading, sent = Watched(daemon, f"{home.name}-{mode}"), 0
            left = list(corpus.captured(mode, home))
            for moment in state.checkpoints(home):
                next_records, left = until(left, moment.ends[mode])
                sent += replaying.produce(next_records)
                reading.await_offsets(sent)
                problems += [
                    f"{home.name} {mode} {moment.name}: {problem}"
                    for problem in differences(home, mode, moment, tmp_path / "warehouse", oracle)
                    if problem not in AS_SENT.get((home, mode), ())
                ]
                known |= {target(home, mode, name.split(".")[1]) for name in moment.tables}
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail()
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
        paimon_table = target(home, mode, name.split(".")[1])
        if not table.rows and not (warehouse / "ods.db" / paimon_table).exists():
            continue  # no message about it yet
        rows = [json.loads(line) for line in oracle.read_lines(warehouse, "ods", paimon_table)]
        types = state.column_types(warehouse, "ods", paimon_table)
        for new, old in RENAMED.items():  # from the beginning, as it is declared
            if old in table.types:
                types[old] = types.pop(new, types.get(old))
                rows = [{**row, old: row.get(new, row.get(old))} for row in rows]
        lost = {**moment.losses, **defaults_of_new_columns(table)}
        problems += state.differences(
            table, rows, types, repeats=repeats.get(name), lost=lost, same=SAME[home, mode]
        )
    return problems


def defaults_of_new_columns(table: state.DatabaseTable) -> dict[state.Lost, Mapping[str, Any]]:
    """ADD COLUMN .. DEFAULT filled rows of which the stream says nothing afterwards."""
    filled = [row for row in table.rows if row.get("extra") == "x"]
    keys = [json.dumps([row[column] for column in table.key]) for row in filled]
    return {(table.name, key, "extra"): {"in_stream": None} for key in keys}

"""Messages that lack a column of `where` delete nothing, whatever is in the same chunk."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from unittest import mock

import pytest

from ingestd.cdc.base import DataFormat, FormatSettings, load_data_format
from ingestd.cdc.json import table_messages
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages import decode_stage
from ingestd.paimon.spec.data_types import DataType
from tests.support.change_events import event
from tests.support.decoded import in_python
from tests.support.ingest_rig import Rig

Row = dict[str, Any]
BEFORE = [{"id": number, "state": "paid", "n": 1} for number in (1, 2, 3)]
KEPT = {"id": 1, "state": "sent", "n": 2}
RENAMED = {"id": 2, "status": "sent", "n": 2}
"""Changes of one chunk: the source renamed the column between them."""


def debezium(op: str, row: Row) -> bytes:
    return event(op, row)


def maxwell(op: str, row: Row) -> bytes:
    kind = "insert" if op == "c" else "update"
    return json.dumps({"database": "d", "table": "orders", "type": kind, "data": row}).encode()


def canal(op: str, row: Row) -> bytes:
    kind, old = ("INSERT", None) if op == "c" else ("UPDATE", [{}])
    names = {"database": "d", "table": "orders", "type": kind, "pkNames": ["id"], "isDdl": False}
    return json.dumps({**names, "data": [row], "old": old}).encode()


def plain(op: str, row: Row) -> bytes:
    return json.dumps(row).encode()


FORMATS: dict[str, Callable[[str, Row], bytes]] = {
    "debezium-json": debezium,
    "maxwell-json": maxwell,
    "canal-json": canal,
    "json": plain,
}


@pytest.fixture(params=["native", "python"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads with and without the native extension, and in slices of two messages."""
    monkeypatch.setattr(table_messages, "_SLICE", 2)

    @cache
    def own(name: str, source: str, settings: FormatSettings) -> DataFormat:
        made = load_data_format(name, settings)
        return made if request.param == "native" else in_python(made)

    monkeypatch.setattr(decode_stage, "shared_data_format", own)


def rig_with(where: str, data_format: str = "debezium-json", **settings: Any) -> Rig:
    shape = ShapeSettings(where=parse_filter(where), **settings.pop("shape", {}))
    table = TableSettings(primary_keys=("id",), shape=shape, **settings)
    return Rig(settings={"orders": table}, data_format=data_format, key=None)


def run(rig: Rig, op: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of the table after changes that are in one chunk, as far as three are."""
    rig.produce(*(FORMATS[rig.data_format](op, row) for row in rows))
    rig.run()
    return rig.rows("orders")


def reasons(rig: Rig) -> list[tuple[int, str]]:
    return [(row["offset"], row["reason"]) for row in rig.rows("ingestd_dead_letters")]


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("data_format", sorted(FORMATS))
def test_a_column_that_is_renamed_within_a_chunk_deletes_nothing(data_format: str) -> None:
    rig = rig_with("state <> 'draft'", data_format)
    run(rig, "c", BEFORE)
    rows = run(rig, "u", [KEPT, RENAMED])
    assert [(row["id"], row["state"]) for row in rows] == [(1, "sent"), (2, "paid"), (3, "paid")]
    assert reasons(rig) == [(4, "impossible-columns")]


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("call", ["upper(state)", "= upper(state)"])
@pytest.mark.parametrize("first", [[], [KEPT]])
def test_a_column_of_a_computed_column_that_is_renamed_deletes_nothing(
    call: str, first: list[Row]
) -> None:
    rig = rig_with("loud <> 'DRAFT'", shape={"computed": (parse_computed("loud", call),)})
    run(rig, "c", BEFORE)
    rows = run(rig, "u", [*first, RENAMED])
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert [reason for _, reason in reasons(rig)] == ["impossible-columns"]


@pytest.mark.usefixtures("decoder")
def test_a_column_with_an_alias_is_there_under_either_name() -> None:
    rig = rig_with("status <> 'draft'", evolution=EvolutionPolicy(aliases={"status": "state"}))
    run(rig, "c", BEFORE)
    rows = run(rig, "u", [KEPT, RENAMED, {"id": 3, "n": 2}])
    assert [(row["id"], row["status"]) for row in rows] == [(1, "sent"), (2, "sent"), (3, "paid")]
    assert reasons(rig) == [(5, "impossible-columns")]


@pytest.mark.usefixtures("decoder")
def test_a_declared_column_is_null_where_a_message_lacks_it() -> None:
    rig = rig_with("state is null", column_types={"state": DataType("STRING")})
    rows = run(rig, "c", [{"id": 1, "n": 1}, KEPT | {"id": 2}, {"id": 3, "state": None, "n": 1}])
    assert [row["id"] for row in rows] == [1, 3]
    assert reasons(rig) == []


@pytest.mark.usefixtures("decoder")
def test_a_column_that_is_null_in_all_messages_so_far_is_not_one_that_they_lack() -> None:
    rig = rig_with("gone is null", shape={"exclude": ("gone",)})
    rows = run(rig, "c", [{"id": number, "n": 1, "gone": None} for number in range(4)])
    assert [row["id"] for row in rows] == [0, 1, 2, 3]
    rows = run(rig, "c", [{"id": 4, "n": 1, "gone": None}, {"id": 5, "n": 1}])
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert reasons(rig) == [(5, "impossible-columns")]


@pytest.mark.usefixtures("decoder")
def test_deletes_are_applied_beside_messages_that_lack_the_column() -> None:
    rig = rig_with("state <> 'draft'")
    run(rig, "c", BEFORE)
    rig.produce(event("u", RENAMED), event("d", before={"id": 3}), event("u", KEPT))
    rig.run()
    assert [(row["id"], row["n"]) for row in rig.rows("orders")] == [(1, 2), (2, 1)]
    assert reasons(rig) == [(3, "impossible-columns")]


def test_rows_are_not_searched_for_missing_columns_without_a_condition() -> None:
    seen: list[bool] = []
    shared = decode_stage.shared_data_format

    def watched(name: str, source: str, settings: Any) -> Any:
        seen.append(settings.presence)
        return shared(name, source, settings)

    for rig in (Rig(data_format="debezium-json", key=None), rig_with("n > 0")):
        with mock.patch.object(decode_stage, "shared_data_format", watched):
            run(rig, "c", BEFORE)
    assert set(seen[:1]) == {False} and set(seen[-1:]) == {True}

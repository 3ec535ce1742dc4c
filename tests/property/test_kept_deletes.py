"""Tables with `on-delete: keep` have the rows of a plain model, also if records are read again."""

from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages import map_side_dedup
from tests.support.examples import examples
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    INSERT,
    UNAVAILABLE,
    UPDATE_AFTER,
    Change,
    JsonChanges,
    record,
)

GROUP = {"fields.source_position.sequence-group": "deleted_at"}
LAST = "last_value"
OPTIONS: list[dict[str, str]] = [
    {"bucket": "-1"},
    {"bucket": "2"},
    {"bucket": "1", "changelog-producer": "lookup"},
    {"bucket": "1", "ignore-delete": "true"},
    {"bucket": "2", "merge-engine": "partial-update", **GROUP},
    {
        "bucket": "1",
        "merge-engine": "aggregation",
        **{f"fields.{name}.aggregate-function": LAST for name in ("n", "doc", "deleted_at")},
    },
]
CHANGES = st.tuples(
    st.integers(1, 3), st.sampled_from("cuud"), st.integers(0, 2), st.sampled_from(["x", "y", None])
)
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def json_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data format of the rig."""
    shared = JsonChanges()
    monkeypatch.setattr("ingestd.ingest.stages.decode_stage.shared_data_format", lambda *_: shared)


@dataclass
class Model:
    """The source's rows, and the rows that its table in the lake has to have."""

    filtered: bool
    partial: bool
    source: dict[int, Row] = field(default_factory=dict)
    lake: dict[int, Row] = field(default_factory=dict)
    messages: list[bytes] = field(default_factory=list)

    def apply(self, identity: int, op: str, n: int, doc: str | None) -> None:
        """Add a change as its source sends it; an update of `doc` to None leaves it out."""
        at = len(self.messages)
        old = self.source.get(identity)
        if op == "d":
            self.source.pop(identity, None)
            if identity in self.lake:
                self.lake[identity]["at"] = at
            self.messages.append(record(Change({"id": identity}, DELETE, position=at + 1)))
            return
        kept = old is not None and op == "u" and doc is None and not self.filtered
        row = {"id": identity, "n": n, "doc": old["doc"] if old and kept else doc}
        self.source[identity] = row
        sent = row | {"doc": UNAVAILABLE} if kept else row
        kind = INSERT if old is None else UPDATE_AFTER
        self.messages.append(record(Change(sent, kind, position=at + 1)))
        if self.filtered and n == 0:
            self.lake.pop(identity, None)
            return
        merged = self.lake.get(identity, {}) if self.partial else {}
        present = {name: value for name, value in row.items() if value is not None}
        self.lake[identity] = ({**row, **merged, **present} if merged else row) | {"at": None}

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table: id, n, doc, and the offset of the delete."""
        values = self.lake.values()
        return sorted(((r["id"], r["n"], r["doc"], r["at"]) for r in values), key=repr)


def shown(rig: Rig) -> list[tuple[Any, ...]]:
    """The rows of the table, as the model has them; a record has the time 1000 ms + offset."""
    if "lake.orders" not in rig.tables:
        return []
    return sorted(
        (
            (row["id"], row["n"], row["doc"], row["deleted_at"] and _offset(row["deleted_at"]))
            for row in rig.rows("orders")
        ),
        key=repr,
    )


def _offset(time: Any) -> int:
    return round(time.timestamp() * 1000) - 1000


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.lists(CHANGES, min_size=1, max_size=6), min_size=1, max_size=4),
    st.sampled_from(OPTIONS),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.data(),
)
def test_a_table_has_the_rows_of_a_plain_model(
    batches: list[list[Any]], options: dict[str, str], filtered: bool, slots: int, data: Any
) -> None:
    engine = options.get("merge-engine", "deduplicate")
    filtered = filtered and (engine == "deduplicate" and "ignore-delete" not in options)
    shape = ShapeSettings(
        on_delete="keep",
        metadata=("source_position",),
        where=parse_filter("n > 0") if filtered else None,
    )
    rig = Rig(
        settings={"orders": TableSettings(options=options, shape=shape, column_types={})},
        slots=slots,
    )
    model = Model(filtered, engine == "partial-update")
    first = record(Change({"id": 0, "n": 1, "doc": "z"}, position=1))
    model.messages.append(first)
    model.lake[0] = {"id": 0, "n": 1, "doc": "z", "at": None}
    rig.produce(first)
    rig.run()
    with mock.patch.object(map_side_dedup, "_LEAST_ROWS", 1):
        for batch in batches:
            sent = len(model.messages)
            for change in batch:
                model.apply(*change)
            rig.produce(*model.messages[sent:])
            rig.run()
            assert shown(rig) == model.rows()
        if engine == "aggregation" or model.partial:
            return
        rig.committed["orders", 0] = data.draw(st.integers(0, len(model.messages)))
        rig.run()
        assert shown(rig) == model.rows()


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(CHANGES, min_size=1, max_size=9),
    st.sampled_from(OPTIONS[:4]),
    st.booleans(),
    st.data(),
)
def test_changes_that_arrive_in_another_order_leave_the_same_rows_alive(
    changes: list[Any], options: dict[str, str], filtered: bool, data: Any
) -> None:
    """A delete that arrives before its row leaves no row; one that arrives after it keeps it."""
    filtered = filtered and "ignore-delete" not in options
    shape = ShapeSettings(
        on_delete="keep",
        metadata=("source_position",),
        where=parse_filter("n > 0") if filtered else None,
    )
    table = TableSettings(options=options, shape=shape, ordering="source-position")
    rig, model = Rig(settings={"orders": table}), Model(filtered, partial=False)
    rig.produce(record(Change({"id": 0, "n": 1, "doc": "z"}, position=0)))
    rig.run()
    for identity, op, n, doc in changes:
        model.apply(identity, op, n, doc or "x")
    arrived = data.draw(st.permutations(model.messages))
    parts = data.draw(st.integers(0, len(arrived)))
    for part in (arrived[:parts], arrived[parts:], arrived[: parts // 2]):
        rig.produce(*part)
        rig.run()
    rows = {row[0]: row for row in shown(rig) if row[0]}
    alive = {row[0]: row for row in model.rows() if row[3] is None}
    assert {key: row for key, row in rows.items() if row[3] is None} == alive
    for key, row in rows.items():
        assert row[3] is None or (model.lake[key]["at"] is not None and row[1] is not None)

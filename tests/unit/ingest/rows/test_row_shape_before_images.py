"""Rows before changes: who asks for them, who gets them, and the changelog that they end in."""

from itertools import pairwise
from typing import Any

import pytest

from ingestd.cdc.base import DataFormat, FormatSettings
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.stages import decode_stage
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.paimon.table.read.incremental_read import read_changelog
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    JsonChanges,
    record,
)

INPUT = {"changelog-producer": "Input"}
FIXED = {"bucket": "2"}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Collects what decoders are asked for; they give the rows of the records."""
    found: list[bool] = []

    def shared(name: str, source: str, settings: FormatSettings) -> DataFormat:
        found.append(settings.images)
        return JsonChanges()

    monkeypatch.setattr(decode_stage, "shared_data_format", shared)
    return found


def rig(options: dict[str, str], **more: Any) -> Rig:
    return Rig(defaults=TableSettings(options={**FIXED, **options}), **more)


def updates(*notes: str, key: int = 1) -> list[bytes]:
    """Updates of one row as formats give them that know the row before."""
    first = record(Change({"id": key, "note": notes[0]}))
    return [first, *(
        record(Change({"id": key, "note": old}, UPDATE_BEFORE),
               Change({"id": key, "note": new}, UPDATE_AFTER))
        for old, new in pairwise(notes)
    )]  # fmt: skip


def told(one: Rig, name: str = "orders") -> list[tuple[str, Any]]:
    rows = read_changelog(one.tables[f"lake.{name}"], 1).to_pylist()
    return [(row["rowkind"], row["note"]) for row in rows]


CHAIN = [("+I", "a"), ("-U", "a"), ("+U", "b"), ("-U", "b"), ("+U", "c")]


def test_a_changelog_of_what_comes_has_every_change_with_the_row_before(asked: list[bool]) -> None:
    one = rig(INPUT)
    one.produce(*updates("a", "b", "c"), record(Change({"id": 1, "note": "c"}, DELETE)))
    result = one.run()
    assert told(one) == [*CHAIN, ("-D", "c")]
    assert one.rows("orders") == []
    assert set(asked) == {True}
    state = one.states["lake.orders"].snapshot
    assert state is not None and (state.changelog_record_count, state.id) == (6, 1)
    assert result.counts.files["lake.orders"] == 2


def test_no_before_images_without_a_changelog(asked: list[bool]) -> None:
    one = rig({"changelog-producer": "lookup"})
    one.produce(*updates("a"))
    one.run()
    assert set(asked) == {False}


def test_a_table_that_exists_asks_though_the_configuration_is_silent(asked: list[bool]) -> None:
    one = rig(INPUT)
    one.produce(*updates("a"))
    one.run()
    one.defaults = TableSettings()
    context = one.context()
    assert context.needs_before_images() and not context.announces_input_changelog()
    asked.clear()
    one.produce(*updates("b", "c")[1:])
    one.run()
    assert set(asked) == {True}
    assert told(one) == [("+I", "a"), ("-U", "b"), ("+U", "c")]


def test_other_tables_of_the_pipeline_take_only_the_row_after_an_update() -> None:
    one = rig({}, settings={"orders": TableSettings(options=INPUT)})
    both = [
        Change({"id": 1, "note": "a"}, UPDATE_BEFORE), Change({"id": 1, "note": "b"}, UPDATE_AFTER)
    ]  # fmt: skip
    others = [Change(change.row, change.kind, table="lines") for change in both]
    one.produce(record(*both), record(*others))
    result = one.run()
    assert told(one) == [("-U", "a"), ("+U", "b")]
    assert result.counts.rows_of("lake.lines") == 1
    assert one.rows("lines") == [{"id": 1, "note": "b"}]


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation", "fields.note.aggregate-function": "max"},
        {"ignore-update-before": "true"},
    ],
    ids=str,
)
def test_tables_without_retractions_have_only_the_row_after_an_update(
    options: dict[str, str],
) -> None:
    one = rig({**INPUT, **options})
    one.produce(*updates("a", "b"))
    result = one.run()
    assert told(one) == [("+I", "a"), ("+U", "b")]
    assert result.counts.rejected == {}


def test_sums_take_back_what_an_update_replaced() -> None:
    options = {"merge-engine": "aggregation", "fields.note.aggregate-function": "sum"}
    one = rig({**INPUT, **options})
    one.produce(
        record(Change({"id": 1, "note": 5})),
        record(Change({"id": 1, "note": 5}, UPDATE_BEFORE), Change({"id": 1, "note": 7}, 2)),
    )
    one.run()
    assert one.rows("orders") == [{"id": 1, "note": 7}]
    assert told(one) == [("+I", 5), ("-U", 5), ("+U", 7)]


@pytest.mark.parametrize("partitions", [1, 3])
def test_runs_of_rows_report_a_key_in_its_order(partitions: int) -> None:
    """A key may have come through several topic partitions."""
    one = rig(INPUT, overrides={"write_buffer_size": 1})
    changes = updates(*"abcdefgh")
    for number, value in enumerate(changes):
        changed = value.replace(b'"position": -1', b'"position": %d' % number)
        one.produce(changed, partition=number % partitions)
    result = one.run()
    notes = "abcdefgh"
    pairs = [step for n in range(1, 8) for step in (("-U", notes[n - 1]), ("+U", notes[n]))]
    assert told(one) == [("+I", "a"), *pairs]
    assert result.counts.files["lake.orders"] > 4


def test_rows_that_follow_a_truncate_in_its_batch_are_reported() -> None:
    one = rig(INPUT)
    one.produce(*updates("a"))
    one.run()
    gone = Change({}, truncate=True, position=50)
    one.produce(record(gone), record(Change({"id": 2, "note": "z"}, position=60)))
    one.run()
    assert one.rows("orders") == [{"id": 2, "note": "z"}]
    assert told(one) == [("+I", "a"), ("+I", "z")]


def test_a_batch_that_ran_before_is_not_reported_twice() -> None:
    one = rig(INPUT)
    one.produce(*updates("a", "b", "c"))
    one.run()
    covered = {"src": {"orders": {0: 3}}}
    one.committed.clear()
    result = one.run(table_changes={"lake.orders": {"covered": covered}})
    assert told(one) == CHAIN
    assert result.counts.rows_of("lake.orders") == 0
    assert SourcePartition("src", "orders", 0) in result.counts.records

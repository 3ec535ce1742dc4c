"""Updates and deletes of tables without a key, by what their settings say of them."""

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.ingest.dead_letters.dead_letter import dead_letter_schema
from ingestd.ingest.settings.context import KeylessTableMode, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.paimon.io.file_io import MemoryFileIO
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import (
    DELETE,
    UNAVAILABLE,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    record,
)

pytestmark = pytest.mark.usefixtures("json_changes")

CHANGES = (
    Change({"id": 1, "v": "a"}, keys=()),
    Change({"id": 1, "v": "a"}, UPDATE_BEFORE, keys=()),
    Change({"id": 1, "v": "b"}, UPDATE_AFTER, keys=()),
    Change({"id": 1, "v": "b"}, DELETE, keys=()),
)


def rig_with(mode: KeylessTableMode | None, **more: object) -> Rig:
    settings = TableSettings(primary_keys=(), keyless_table_mode=mode, **more)  # type: ignore[arg-type]
    return Rig(settings={"orders": settings})


@pytest.mark.parametrize("mode", ["reject", None])
def test_changes_are_dead_letters_unless_something_else_is_said(
    mode: KeylessTableMode | None,
) -> None:
    rig = rig_with(mode)
    rig.produce(*(record(change) for change in CHANGES))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "v": "a"}]
    dead_letters = rig.rows("ingestd_dead_letters", "reason", "offset")
    # A row before an update is recognised by the row after it.
    assert [dead_letter["offset"] for dead_letter in dead_letters] == [2, 3]
    assert {dead_letter["reason"] for dead_letter in dead_letters} == {"change-without-key"}


def test_with_latest_only_the_row_after_each_change_is_appended() -> None:
    rig = rig_with("latest-only")
    rig.produce(*(record(change) for change in CHANGES))
    result = rig.run()
    assert rig.rows("orders") == [{"id": 1, "v": "a"}, {"id": 1, "v": "b"}]
    assert not rig.rows("ingestd_dead_letters", "reason")
    assert result.counts.skipped["lake.orders", "ignored"] == 1


def test_an_audit_has_every_change_with_its_kind() -> None:
    rig = rig_with("audit")
    rig.produce(*(record(change) for change in CHANGES))
    rig.run()
    found = [(row["row_kind"], row["v"]) for row in rig.rows("orders")]
    assert sorted(found) == [("+I", "a"), ("+U", "b"), ("-D", "b"), ("-U", "a")]
    assert not rig.rows("ingestd_dead_letters", "reason")


def test_an_audit_shows_kinds_whatever_columns_are_selected() -> None:
    rig = rig_with("audit", shape=ShapeSettings(include=("v",)))
    rig.produce(*(record(change) for change in CHANGES))
    rig.run()
    assert set(rig.rows("orders")[0]) == {"v", "row_kind"}


def test_a_source_with_a_column_of_that_name_is_refused() -> None:
    rig = rig_with("audit", evolution=EvolutionPolicy(on_refused="fail"))
    rig.produce(record(Change({"id": 1, "row_kind": "x"}, keys=())))
    with pytest.raises(SchemaConflictError, match="row_kind"):
        rig.run()


@pytest.mark.parametrize("mode", ["latest-only", "audit"])
def test_a_table_with_a_key_is_none_of_its_business(mode: KeylessTableMode) -> None:
    rig = Rig(defaults=TableSettings(keyless_table_mode=mode))
    rig.produce(record(Change({"id": 1, "v": "a"})), record(Change({"id": 2, "v": "b"})))
    rig.produce(record(Change({"id": 1}, DELETE)))
    rig.run()
    assert rig.rows("orders") == [{"id": 2, "v": "b"}]


@pytest.mark.parametrize("mode", ["latest-only", "audit"])
def test_a_value_that_was_left_out_is_not_invented(mode: KeylessTableMode) -> None:
    rig = rig_with(mode)
    rig.produce(record(Change({"id": 1, "v": "a", "n": 5}, keys=())))
    rig.produce(
        record(Change({"id": 1, "v": UNAVAILABLE, "n": UNAVAILABLE}, UPDATE_AFTER, keys=()))
    )
    rig.run()
    cells = [(row["v"], row["n"]) for row in rig.rows("orders")]
    assert sorted(cells, key=repr) == [("a", 5), (None, None)]


def test_an_insert_without_a_value_has_null_and_is_counted() -> None:
    """PostgreSQL leaves values out of the insert of an update that changed the key."""
    rig = rig_with("reject")
    for first, second in ((1, 2), (3, 4)):
        rig.produce(record(Change({"id": first, "v": "a"}, keys=())))
        rig.produce(record(Change({"id": second, "v": UNAVAILABLE}, keys=())))
        assert rig.run().counts.unknown["lake.orders"] == 1
    assert [row["v"] for row in rig.rows("orders")] == ["a", None, "a", None]


def test_changes_are_applied_after_the_way_out_of_their_dead_letter() -> None:
    rig = rig_with(None)
    rig.produce(*(record(change) for change in CHANGES[:3]))
    rig.run()
    (dead_letter,) = rig.rows("ingestd_dead_letters", "message")
    assert "let it be created again with its key in primary-keys" in dead_letter["message"]
    rig.settings = {"orders": TableSettings(primary_keys=("id",))}
    rig.produce(record(CHANGES[2]))
    rig.run()
    assert len(rig.rows("ingestd_dead_letters", "message")) == 2  # the key alone has no effect
    del rig.tables["lake.orders"], rig.states["lake.orders"]
    rig.io = MemoryFileIO()
    rig.create(DEAD_LETTERS, dead_letter_schema(0))
    rig.committed.clear()
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "v": "b"}]
    assert rig.rows("ingestd_dead_letters", "message") == []

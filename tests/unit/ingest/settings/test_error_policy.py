"""What becomes of records that cannot be used, stage by stage."""

from typing import Any

import pytest

from ingestd.errors import PolicyStopError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.error_policy import STAGES, ErrorAction, ErrorPolicy
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import UPDATE_AFTER, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")

GOOD = record(Change({"id": 1, "n": "7"}))
BAD: dict[str, tuple[bytes, dict[str, Any]]] = {
    "decode": (b"{", {}),
    "route": (
        record(Change({"id": 9}, table="stranger")),
        {"routing": RoutingConfig(including_tables="orders", unmatched="dead-letter")},
    ),
    "key": (record(Change({"id": None, "n": "7"})), {}),
    "cast": (
        record(Change({"id": 2, "n": "x"})),
        {
            "settings": {
                "orders": TableSettings(
                    shape=ShapeSettings((parse_computed("m", "cast(n as int)"),))
                )
            }
        },
    ),
    "schema": (
        record(Change({"id": 2, "n": "7", "new": 1})),
        {"settings": {"orders": TableSettings(evolution=EvolutionPolicy("none", "dead-letter"))}},
    ),
    "merge": (
        record(Change({"id": 1, "n": "8"}, 3)),
        {"settings": {"orders": TableSettings(options={"merge-engine": "partial-update"})}},
    ),
}
"""A record that fails at a stage, and a rig where it does."""


def rig_for(stage: str, action: ErrorAction | None) -> Rig:
    value, parts = BAD[stage]
    policy = ErrorPolicy({} if action is None else {stage: action})
    rig = Rig(**parts, overrides={"error_policy": policy})
    rig.produce(GOOD)
    rig.run()
    rig.produce(value, GOOD)
    return rig


def dead_letters(rig: Rig) -> list[str]:
    return [row["stage"] for row in rig.rows(DEAD_LETTERS.partition(".")[2])]


def test_every_stage_is_tried() -> None:
    assert BAD.keys() == STAGES.keys()


@pytest.mark.parametrize("stage", BAD)
def test_records_are_kept_where_nothing_else_is_said(stage: str) -> None:
    rig = rig_for(stage, None)
    counts = rig.run().counts
    assert dead_letters(rig) == [stage]
    assert (counts.rejected.total(), counts.dropped.total()) == (1, 0)


@pytest.mark.parametrize("stage", BAD)
def test_pipeline_stops_with_the_place_of_the_record(stage: str) -> None:
    rig = rig_for(stage, "fail")
    with pytest.raises(PolicyStopError, match=rf"orders/0 at offset 1 \({stage}, .*errors.{stage}"):
        rig.run()
    assert dead_letters(rig) == []


@pytest.mark.parametrize("stage", BAD)
def test_dropped_records_are_counted(stage: str) -> None:
    rig = rig_for(stage, "drop")
    counts = rig.run().counts
    assert dead_letters(rig) == []
    assert [where for where, _ in counts.dropped] == [stage]
    assert counts.dropped == counts.rejected


def test_a_stage_is_treated_without_the_others() -> None:
    rig = Rig(overrides={"error_policy": ErrorPolicy({"key": "fail"})})
    rig.produce(b"{", record(Change({"id": 1}, UPDATE_AFTER)))
    rig.run()
    assert dead_letters(rig) == ["decode"]

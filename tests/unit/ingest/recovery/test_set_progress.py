"""Where a table begins again, and what it accepts of deleted topics."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.recovery.set_progress import at_claims, begin
from ingestd.ingest.tables.claims import read_claims
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.registry_opening import RegistryOpening
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.io.file_io import LocalFileIO
from tests.support.truth_rig import Topic, Truth

ORDERS, USERS = "shop.orders", "shop.users"
NAME = "lake.orders"


def test_the_end_of_a_deleted_topic_is_not_accepted_for_a_table_that_does_not_cover_it(
    tmp_path: Path,
) -> None:
    truth = Truth(tmp_path)
    for topic in (ORDERS, USERS):
        truth.kafka.topics[topic] = Topic(f"id of {topic}")
        truth.kafka.produce(topic, *range(10))
    truth.live()
    seen: dict[str, frozenset[str]] = {}

    def vector(registry: TableRegistry) -> dict[str, dict[int, Position]]:
        keys = frozenset(registry.progress.end)
        registry.note(replace(registry.progress, accepted=keys))
        (covered, *_) = sorted(keys)
        seen["covered"], seen["all"] = frozenset({covered}), keys
        return {covered: dict(registry.progress.end[covered])}

    begin(truth.settings, truth.catalog, LocalFileIO(), NAME, vector, lambda: 1)
    opened = RegistryOpening(truth.settings, truth.catalog, LocalFileIO()).open()
    progress = opened.tables[NAME].progress
    assert progress is not None
    assert len(seen["all"]) == 2
    assert progress.pipeline.accepted == seen["covered"]


def test_a_table_does_not_begin_at_claims_that_do_not_name_it(tmp_path: Path) -> None:
    truth = Truth(tmp_path)
    truth.kafka.topics[ORDERS] = Topic("one")
    truth.kafka.produce(ORDERS, 1)
    truth.live()
    claims = read_claims(truth.io, truth.settings.warehouse, truth.name)
    assert claims is not None
    for given in (None, replace(claims, complete={})):
        at = at_claims(NAME, given)
        with pytest.raises(ConfigError, match=r"no entry for table lake\.orders"):
            begin(truth.settings, truth.catalog, truth.io, NAME, at, truth.now_ms)

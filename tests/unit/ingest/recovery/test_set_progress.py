"""Where a table begins again, and what it accepts of deleted topics."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.ingest.recovery.set_progress import at_claims, at_origin, begin
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.tables.claims import read_claims
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.progress import VERSION
from ingestd.ingest.tables.registry_opening import RegistryOpening
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.snapshot import encode_snapshot, parse_snapshot
from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from tests.support.command_line import run_command
from tests.support.truth_rig import Topic, Truth

ORDERS, USERS = "shop.orders", "shop.users"
NAME = "lake.orders"


def test_the_end_of_a_deleted_topic_is_not_accepted_for_a_table_that_does_not_cover_it(
    tmp_path: Path,
) -> None:
    truth = Truth(tmp_path)
    truth.kafka.add_topics(ORDERS, USERS)
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


def test_a_table_that_sums_values_does_not_get_them_again(tmp_path: Path) -> None:
    sums = {"merge-engine": "aggregation", "fields.at.aggregate-function": "sum", "bucket": "1"}
    settings = TableSettings(("id",), (), sums, {"at": DataType("BIGINT")})
    truth = Truth(tmp_path, tables={"orders": settings})
    truth.kafka.topics[ORDERS] = Topic("one")
    truth.kafka.produce(ORDERS, 1)
    truth.live()
    with pytest.raises(ConfigError, match="aggregates values and has 1 row, which would be dup"):
        begin(truth.settings, truth.catalog, truth.io, NAME, at_origin(NAME), truth.now_ms)


def test_a_table_with_a_record_of_another_version_begins_as_its_error_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = Truth(tmp_path)
    truth.kafka.add_topics(ORDERS, USERS)
    truth.live()
    opening = RegistryOpening(truth.settings, truth.catalog, truth.io)
    names = sorted(set(opening.open().tables) - {truth.settings.dead_letters})
    for name in names:
        paths = truth.catalog.get_table(Identifier.parse(name)).paths
        for id_ in snapshot_ids(truth.io, paths):
            path = Path(paths.snapshot(id_))
            snapshot = parse_snapshot(path.read_bytes(), str(path))
            older = replace(snapshot, properties={**snapshot.properties, VERSION: "1"})
            path.write_bytes(encode_snapshot(older))
    with pytest.raises(UnsupportedError, match="set a record with `ingestd begin`"):
        opening.open()
    for name in names:
        with pytest.raises(ConfigError, match="empty it first with `ingestd truncate"):
            begin(truth.settings, truth.catalog, truth.io, name, at_origin(name), truth.now_ms)
        warehouse = truth.settings.warehouse
        assert run_command(capsys, "truncate", warehouse, name, "--yes").code == 0
        begin(truth.settings, truth.catalog, truth.io, name, at_origin(name), truth.now_ms)
    assert set(opening.open().tables) >= set(names)

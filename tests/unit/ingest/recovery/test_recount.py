"""Tables against what their logs have, by a pipeline without Spark and Kafka."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ingestd.errors import UnsupportedError
from ingestd.ingest.recovery.audit import recount_findings
from ingestd.ingest.recovery.logs import Logs, ask_logs
from ingestd.ingest.recovery.recount import (
    Recount,
    RecountSpan,
    Replay,
    check_countable,
    covered_span,
    recount,
    scratch_settings,
)
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.ingest.tables.registry_opening import OpenedTables, RegistryOpening
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table
from tests.support.truth_rig import Topic, Truth

ORDERS, TABLE = "shop.orders", "lake.orders"


@dataclass
class Scene(Truth):
    """A pipeline into tables with keys, or without."""

    keys: tuple[str, ...] = ()

    @property
    def settings(self) -> PipelineSettings:
        options = {"bucket": "1" if self.keys else "-1"}
        settings = super().settings
        return replace(
            settings,
            defaults=TableSettings(self.keys, (), options, {}),
            limits=BatchLimits(write_tasks=1, small_batch_records=3),
        )

    def opened(self) -> OpenedTables:
        return RegistryOpening(self.settings, self.catalog, LocalFileIO()).open()

    def logs(self) -> Logs:
        return ask_logs({"src": self.kafka})  # type: ignore[dict-item]

    def span(self) -> RecountSpan:
        opened = self.opened()
        return covered_span(TABLE, opened.tables, opened.progress.origin, self.logs())

    def recount(self, span: RecountSpan | None = None) -> Recount:
        folder = self.root / f"scratch-{len(list(self.root.iterdir()))}"
        one = self.opened().tables[TABLE]
        settings = scratch_settings(self.settings, TABLE, str(folder))
        replay = Replay(settings, TABLE, one.table.schema, self.kafka.fetch)
        return recount(replay, TABLE, one, span or self.span(), self.logs().keys)


def codes(found: Recount) -> list[tuple[str, str]]:
    return [
        (recount_finding.severity, recount_finding.code)
        for recount_finding in recount_findings(found)
    ]


@pytest.fixture(params=[(), ("id",)], ids=["append", "keyed"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """Ten orders and ten users, in tables."""
    scene = Scene(tmp_path, keys=request.param)
    scene.kafka.add_topics(ORDERS, "shop.users")
    scene.live()
    return scene


def test_a_whole_table_has_what_its_log_has(scene: Scene) -> None:
    scene.kafka.produce(ORDERS, 3, 4)  # more than the table covers yet
    found = scene.recount()
    assert (found.records, found.complete, found.rejected) == (10, True, 0)
    assert (found.rows.expected, found.rows.found) == (10, 10)
    assert codes(found) == []
    scene.live()
    found = scene.recount()
    assert (found.rows.expected, codes(found)) == (10 if scene.keys else 12, [])


def test_rows_that_are_gone_are_named(scene: Scene) -> None:
    scene.truncate("orders")
    found = scene.recount()
    assert (found.rows.missing, found.rows.found) == (10, 0)
    assert codes(found) == [("error", "missing-rows")]
    (finding,) = recount_findings(found)
    assert finding.where == TABLE
    assert "'id': " in finding.message


def test_rows_that_no_record_brought_are_named(scene: Scene) -> None:
    span = scene.span()
    shorter = replace(span, end={"src": {ORDERS: {0: 6}}})
    found = scene.recount(shorter)
    assert (found.records, found.rows.extra) == (6, 4)
    assert codes(found) == [("error", "extra-rows")]


def test_other_contents_are_named(scene: Scene) -> None:
    records = scene.kafka.topics[ORDERS].logs[0].records
    records[3], records[7] = records[7], records[3]
    found = scene.recount()
    if scene.keys:
        assert (found.rows.different, found.rows.missing, found.rows.extra) == (2, 0, 0)
        assert codes(found) == [("error", "different-rows")]
        assert codes(replace(found, complete=False)) == [("warning", "different-rows")]
    else:
        assert (found.rows.missing, found.rows.extra) == (2, 2)


def test_of_a_log_that_lost_its_beginning_only_the_rest_is_compared(scene: Scene) -> None:
    scene.kafka.topics[ORDERS].logs[0].first = 4
    found = scene.recount()
    assert (found.records, found.complete) == (6, False)
    assert (found.rows.expected, found.rows.missing, found.rows.extra) == (6, 0, 4)
    assert codes(found) == []
    scene.truncate("orders")
    assert codes(scene.recount()) == [("error", "missing-rows")]
    scene.kafka.topics[ORDERS].logs[0].first = 10
    assert scene.recount().records == 0


def test_logs_of_other_tables_are_not_read_but_those_that_fed_no_table_are(scene: Scene) -> None:
    scene.kafka.topics["shop.idle"] = Topic("id of idle")
    scene.kafka.topics["copy.orders"] = Topic("id of copy")
    scene.live()
    scene.kafka.produce("copy.orders", 90)
    scene.live()
    span = scene.span()
    assert span.end["src"].keys() == {ORDERS, "copy.orders", "shop.idle"}
    assert codes(scene.recount()) == []
    del scene.kafka.topics["copy.orders"]
    assert not scene.span().complete


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"bucket": "-2"}, "postponed buckets"),
        ({"merge-engine": "first-row"}, "first-row"),
        ({"deletion-vectors.enabled": "true"}, "deletion vectors"),
    ],
)
def test_tables_that_hide_rows_are_refused_by_name(
    tmp_path: Path, options: dict[str, str], what: str
) -> None:
    table: FileStoreTable = native_table(tmp_path, [("id", "INT")], keys=["id"])
    check_countable(table)
    schema = replace(table.schema, options={**table.schema.options, **options})
    with pytest.raises(UnsupportedError, match=f"{what}.*leave out --recount"):
        check_countable(table.with_schema(schema))

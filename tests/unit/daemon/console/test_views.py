from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import parse_qsl

import pytest

from ingestd.config.effective import Setting
from ingestd.daemon.console.views import ASSETS, SPANS, asset, console_page
from ingestd.daemon.recent_history import SavedHistory
from ingestd.daemon.samples import Sample
from ingestd.daemon.status import Status
from ingestd.errors import IngestdError, OffsetLostError, SourceError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.lag_metrics import forget_partitions
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.table_schema import TableSchema

LINKS: Mapping[str, str] = {"/status": "JSON"}
VOID = {"meta", "link", "br", "input"}


class Outline(HTMLParser):
    """Tags that are open, texts by tag, and attributes by tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def of(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


@pytest.fixture
def status() -> Status:
    status = Status("shop", "1.2.3", ["s"], lambda: 1_700_000_000.0, lambda: 5.0)
    status.enter("running")
    ranges = [OffsetRange("s", "orders", 0, 0, 5)]
    status.batch_started("3", ranges)
    bad = RejectedSample("s", "orders", 0, 4, "cast", "no_number", "column total: 'x'")
    counts = Counts()
    counts.rows["db.orders", 0] = 1234
    commit = TableCommit("db.orders", "committed", 9, 1, 0.1)
    until = {"s": {"orders": {0: 5}}}
    status.batch_finished(BatchSummary("3", until, (commit,), counts, (bad,), {"write": 0.5}))
    status.source_answered("s", {"orders": {0: 1005}})
    return status


def outline(status: Status, path: str = "/", **query: str) -> Outline:
    page = console_page(path, query, status.console_document(), LINKS)
    assert page is not None
    return Outline(page.decode())


def test_it_is_well_formed_and_says_state_lag_and_tables_first(status: Status) -> None:
    page = outline(status)
    assert page.open == []
    assert page.of("title") == ["shop: running"]
    assert page.of("b")[:2] == ["1,000", "–"]
    assert page.of("h2") == ["Tables", "Topics", "Batches", "Dead letters"]
    assert {"db.orders", "orders/0@4"} <= {*page.of("a"), *page.of("td")}
    assert {"1,234", "cast: no_number", "column total: 'x'", "reachable"} <= set(page.of("td"))


def test_errors_come_before_everything_that_is_well(status: Status) -> None:
    status.failed(SourceError("no broker; look at the network policy"))
    page = outline(status)
    assert page.of("h2")[0] == "Errors"
    assert "no broker; look at the network policy " in page.of("li")


@pytest.mark.parametrize(
    ("error", "part"),
    [(OffsetLostError("a gap"), "OffsetLostError"), (IngestdError("a bug"), "Symptoms")],
)
def test_errors_link_to_their_part_of_the_runbook(
    status: Status, error: IngestdError, part: str
) -> None:
    status.failed(error)
    runbook = outline(status, "/runbook")
    assert runbook.open == []
    ids = {one["id"] for _, one in runbook.attributes if "id" in one}
    for path in ("/", "/errors"):
        page = outline(status, path)
        links = {str(one["href"]) for tag, one in page.attributes if tag == "a"}
        assert f"/runbook#{part.lower()}" in links
        assert f"First steps: {part}" in page.of("a")
        assert {link.partition("#")[2] for link in links if link.startswith("/runbook#")} <= ids


def test_the_runbook_links_to_nothing_that_the_daemon_does_not_serve(status: Status) -> None:
    page = outline(status, "/runbook")
    links = {str(one["href"]) for tag, one in page.attributes if tag == "a"}
    ids = {f"#{one['id']}" for _, one in page.attributes if "id" in one}
    views = {link for link in links if link.startswith("/")}
    assert links - views - ids == set()
    assert any("docs/operations.md" in text for text in page.of("td"))


def test_changes_of_schemas_are_reported_newest_first(status: Status) -> None:
    first = TableSchema(0, (DataField(0, "id", parse_type("BIGINT")),), 0)
    wider = replace(first, id=1, fields=(*first.fields, DataField(1, "a<b", parse_type("INT"))))
    status.tables_opened({"db.orders": OpenedTable(first)})
    assert "none since the start" in outline(status, "/changes").of("p")
    status.tables_opened({"db.orders": OpenedTable(wider)})
    page = outline(status, "/changes")
    assert "Schema changes" in page.of("h2")
    assert "added a<b INT" in page.of("td")


def test_tables_show_their_lag(status: Status) -> None:
    assert "lag in seconds" in outline(status).of("th")


def test_a_running_batch_is_reported_by_phase(status: Status) -> None:
    status.batch_started("4", [])
    status.phase("decode", 1.25)
    assert any("batch 4 for 0 s (decode 1.2 s)" in text for text in outline(status).of("p"))


def test_compaction_is_reported_by_table_and_by_what_it_did(status: Status) -> None:
    done = {"at": 1_700_000_000.0, "table": "db.orders", "result": "compacted", "seconds": 2.4,
            "files_before": 6, "files_after": 1, "bytes_read": 6000, "bytes_written": 1500,
            "snapshot_id": 10, "message": ""}  # fmt: skip
    failed = {"at": 1.0, "table": "db.a", "result": "failed", "message": "no <disk>"}
    maintenance = {
        "mode": "background",
        "throttled_by": "sorted-runs",
        "over_stop_trigger": ["db.orders"],
        "tables": {"db.orders": {"level_0": 1004, "sorted_runs": 1009}},
        "compactions": [done, failed],
    }
    status.show_maintenance(lambda: maintenance)
    page = outline(status, "/changes")
    assert page.open == []
    assert "Compactions" in page.of("h2")
    assert {"6 to 1", "6,000 to 1,500", "failed: no <disk>"} <= {*page.of("td")}
    page = outline(status)
    assert {"1,004", "1,009 "} <= {*page.of("td")}
    assert "above the stop trigger" in page.of("b")
    assert any("wait for compactions" in text for text in page.of("li"))


def test_a_daemon_that_does_not_compact_says_so(status: Status) -> None:
    status.show_maintenance(lambda: {"mode": "off", "compactions": []})
    assert "done by another process" in outline(status, "/changes").of("p")


def test_readers_of_the_screen_find_their_way(status: Status) -> None:
    page = outline(status)
    tags = dict(page.attributes)
    assert tags["html"]["lang"] == "en"
    assert [one for tag, one in page.attributes if tag == "th" and "scope" not in one] == []
    ids = {one["id"] for _, one in page.attributes if "id" in one}
    named = {one["aria-labelledby"] for _, one in page.attributes if "aria-labelledby" in one}
    assert named <= ids
    assert ("a", {"class": "skip", "href": "#status"}) in page.attributes
    assert [one for tag, one in page.attributes if "aria-current" in one] == [
        {"href": "/", "aria-current": "page"},
        {"href": "/?span=1+h", "aria-current": "true"},
    ]


def test_an_empty_daemon_has_a_page() -> None:
    page = outline(Status("shop", "1", []))
    assert page.open == []
    assert "no table" in page.of("p")


def test_every_view_is_well_formed_and_linked(status: Status) -> None:
    status.failed(SourceError("no <broker>"))
    page = outline(status)
    linked = {str(one["href"]) for tag, one in page.attributes if tag == "a"}
    views = linked - {"#status", "/tables/db.orders", *LINKS}
    parts = {view for view in views if "#" in view}
    assert len(views - parts) == 9 + len(SPANS) + 1, "views, times of charts, and a topic"
    for view in views:
        path, _, query = view.partition("#")[0].partition("?")
        assert outline(status, path, **dict(parse_qsl(query))).open == []


def test_an_outage_is_unknown_everywhere_and_never_zero(status: Status) -> None:
    times = BatchTimes()
    times.note_event("db.orders", 1_700_000_000_000)
    times.note_reached(SourcePartition("s", "orders", 0), 4, 1_700_000_000_000)
    topics = {"db.orders": frozenset({("s", "orders")})}
    until = {"s": {"orders": {0: 5}}}
    summary = BatchSummary("4", until, (), Counts(), times=times, topics=topics)
    status.source_answered("s", {"orders": {0: 5}})
    status.batch_finished(summary)
    assert outline(status).of("b")[:2] == ["0", "0"]
    status.source_went_silent("s", "no broker")
    status.sample()
    page = outline(status)
    assert page.of("b")[:2] == ["–", "–"]
    assert "not reachable" in page.of("td")
    assert "0" not in outline(status, "/topics").of("td")
    assert status.document()["tables"]["db.orders"]["lag_seconds"] is None
    assert status.console_document()["samples"][-1].freshness is None


@pytest.mark.parametrize("span", SPANS)
def test_charts_show_the_time_that_was_asked_for(span: str) -> None:
    now = 1_700_000_000.0
    status = Status("shop", "1", [], lambda: now, lambda: 5.0)
    samples = [Sample(now - n * 10.0, 10.0, 50, 1000, 3.0, 1.5) for n in range(8640, -1, -1)]
    status.restore(SavedHistory(samples, [], [], []))
    page = console_page("/", {"span": span}, status.console_document(), LINKS)
    assert page is not None
    drawn = Outline(page.decode())
    assert [one["aria-label"] for tag, one in drawn.attributes if tag == "svg"] == [
        "Lag in records: now –, from 1,000 to 1,000",
        "Freshness in seconds: now –, from 3 to 3",
        "Rate in records a second: now 5, from 5 to 5",
        "Batch time in seconds: now –, from 1.5 to 1.5",
    ]
    paths = [str(one["d"]) for tag, one in drawn.attributes if tag == "path"]
    for path in paths[1::2]:
        assert path.count("M") == 1, "there is no gap"
        assert 60 <= path.count("L") <= 240
        assert float(path.rpartition("L")[2].partition(",")[0]) == 480
    assert len(page) < 24_000


def test_the_configuration_is_shown_with_its_origin(status: Status) -> None:
    assert "unknown" in outline(status, "/configuration").of("p")
    status.show_configuration(lambda: [Setting("warehouse.path", "<lake>", "shop.yaml:2")])
    page = outline(status, "/configuration")
    assert page.of("td") == ["<lake>", "shop.yaml:2"]
    assert "configuration" not in status.document(), "the JSON of /status is for programs"


def many_tables(count: int) -> Status:
    status = Status("shop", "1", ["s"], lambda: 1_700_000_000.0, lambda: 5.0)
    schema = TableSchema(0, (DataField(0, "id", parse_type("BIGINT")),), 0)
    opened = {f"ods.t{number:04}": OpenedTable(schema, number, 1.0) for number in range(count)}
    status.tables_opened(opened)
    return status


def names(page: Outline) -> list[str]:
    return [name for name in page.of("a") if name.startswith("ods.")]


def test_of_2000_tables_a_page_shows_a_hundred() -> None:
    status = many_tables(2000)
    assert len(names(outline(status))) == 10
    document = status.console_document()
    html = console_page("/tables", {"page": "20"}, document, LINKS)
    assert html is not None
    assert len(html) < 60_000
    assert names(Outline(html.decode())) == [f"ods.t{number}" for number in range(1900, 2000)]
    for page in ("0", "21", "-1", "x", "9" * 30, "²"):
        assert len(names(outline(status, "/tables", page=page))) == 100


def test_tables_are_searched_and_sorted(status: Status) -> None:
    status.source_answered("s", {"orders": {0: 5}})
    schema = TableSchema(0, (DataField(0, "id", parse_type("BIGINT")),), 0)
    status.tables_opened({"db.<i>": OpenedTable(schema, 7, 1_700_000_000.0)})

    def shown(**query: str) -> list[str]:
        page = outline(status, "/tables", **query)
        assert page.open == []
        return [name for name in page.of("a") if name.startswith("db.")]

    assert shown() == ["db.<i>", "db.orders"]
    assert shown(q="ORD") == ["db.orders"]
    assert shown(sort="rows") == ["db.orders", "db.<i>"]
    assert shown(q='"><script>') == []
    assert {"2023-11-14 22:13:20", "opened"} <= {
        *outline(status, "/tables").of("td"),
        *outline(status, "/tables").of("time"),
    }


def test_topics_are_searched_sorted_and_paged() -> None:
    status = Status("shop", "1", ["s"], lambda: 1_700_000_000.0, lambda: 5.0)
    ends = {f"t{n:04}": {0: 5} for n in range(2000)} | {"wide": dict.fromkeys(range(250), 5)}
    covered = {topic: dict.fromkeys(ends[topic], 5) for topic in ends} | {"t0007": {0: 1}}
    status.batch_finished(BatchSummary("1", {"s": covered}, (), Counts()))
    status.source_answered("s", ends)

    def shown(**query: str) -> tuple[list[str], list[str]]:
        html = console_page("/topics", query, status.console_document(), LINKS)
        assert html is not None
        assert len(html) < 60_000
        page = Outline(html.decode())
        assert page.open == []
        assert len([tag for tag, _ in page.attributes if tag == "tr"]) <= 202
        return [text for text in page.of("a") if text in ends], page.of("h2")

    topics, titles = shown()
    assert topics == [f"t{n:04}" for n in range(100)]
    assert titles == ["Topics, 2,001 of 2,001", "Partitions, 100 of 100"]
    assert shown(page="21")[0] == ["wide"]
    assert shown(sort="lag")[0][0] == "t0007"
    assert shown(behind="1")[0] == ["t0007"]
    assert shown(q="T000")[0] == [f"t{n:04}" for n in range(10)]
    assert shown(q="WIDE", page="3") == (["wide"], ["Topics, 1 of 2,001", "Partitions, 50 of 250"])
    # Later tests of this process read the page of metrics.
    forget_partitions(("s", topic, number) for topic, held in ends.items() for number in held)


@pytest.mark.parametrize("path", ASSETS)
def test_its_files_are_small(path: str) -> None:
    assert 100 < len(asset(path)) < 10_000

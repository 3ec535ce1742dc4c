"""The console in a real browser: it follows without reloading, is for everybody, and small."""

from collections.abc import Iterator

import pytest

from ingestd.daemon.console.views import PAGE_ROWS
from ingestd.daemon.status import Status
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.values.counts import Counts
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.table_schema import TableSchema
from tests.page.axe import axe_source, findings
from tests.page.page_scene import scene
from tests.page.pictures import LOOKS, VIEWS, served
from tests.support.browser import Page, browser, open_page

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(browser() is None, reason="no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_page(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(scope="module")
def axe() -> str:
    source = axe_source()
    if source is None:
        pytest.skip("no npm on this machine")
    return source


def commit(status: Status, table: str) -> None:
    counts = Counts()
    counts.rows[table, 0] = 1234
    status.batch_finished(
        BatchSummary("1", {}, (TableCommit(table, "committed", 1, 1, 0.1),), counts)
    )


def test_it_follows_without_reloading_and_works_with_the_keyboard(page: Page) -> None:
    status = Status("shop", "1.2.3", ["s"])
    with served(status) as address:
        page.show()
        page.open(f"{address}/tables")
        assert "db.orders" not in page.run("document.body.textContent")
        reached = []
        for _ in range(40):
            page.press_tab()
            reached.append(page.run("document.activeElement.outerHTML.slice(0, 60)"))
        assert 'class="skip"' in reached[0]
        for part in ('href="/errors"', '<input type="search"', "<select", "<button", "/metrics"):
            assert any(part in element for element in reached), part
        page.run("document.activeElement.blur()")
        commit(status, "db.orders")
        waiting = "new Promise(done => setTimeout(() => done(document.body.textContent), 2500))"
        text = page.run(waiting)
        assert "db.orders" in text
        assert "live" in text


def test_updates_leave_what_the_user_does_alone(page: Page) -> None:
    """Letters in the form, the focus on a link, and how far a table is scrolled."""
    status = Status("shop", "1.2.3", ["s"])
    commit(status, "db.orders")
    commit(status, "db.parts")

    def wait_for(words: str) -> str:
        condition = f"document.body.textContent.includes('{words}')"
        script = (
            f"{{ if ({condition}) {{ clearInterval(asked); done(document.body.textContent) }} }}"
        )
        text: str = page.run(
            f"new Promise(done => {{ const asked = setInterval(() => {script}, 50) }})"
        )
        return text

    with served(status) as address:
        page.show(width=320)
        page.open(f"{address}/tables")
        page.run("document.querySelector('[type=search]').focus()")
        page.run("document.activeElement.value = 'par'")
        commit(status, "db.new")
        assert "db.new" not in wait_for("paused while you fill in the form")
        assert page.run("document.activeElement.value") == "par"
        page.run("document.querySelector('[href=\"/tables/db.parts\"]').focus()")
        page.run("document.querySelector('.wide').scrollLeft = 40")
        wait_for("db.new")
        assert page.run("document.activeElement.textContent") == "db.parts"
        assert page.run("document.querySelector('.wide').scrollLeft") == 40


@pytest.mark.parametrize("look", LOOKS)
def test_every_view_is_for_everybody(page: Page, axe: str, look: str) -> None:
    """Axe-core finds nothing against WCAG 2.2 AA, and no view is wider than its window."""
    width, dark = LOOKS[look]
    page.show(width=width, dark=dark)
    with served(scene()) as address:
        for path in VIEWS.values():
            page.open(address + path)
            page.run('document.querySelector("details")?.setAttribute("open", "")')
            assert findings(page, axe) == [], path
            assert page.run("document.documentElement.scrollWidth") <= width, path
        page.run("document.body.append(document.createElement('select'))")
        assert "select-name" in dict(findings(page, axe)), "it does look"
        background = page.run("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") is not dark


def test_2000_tables_cost_as_much_as_100(page: Page) -> None:
    status = Status("shop", "1", ["s"])
    schema = TableSchema(0, (DataField(0, "id", parse_type("BIGINT")),), 0)
    status.tables_opened({f"ods.t{n:04}": OpenedTable(schema, n, 1.0) for n in range(2000)})
    page.show()
    with served(status) as address:
        page.requests.clear()
        page.bytes = 0
        page.open(f"{address}/tables")
        assert page.run('document.querySelectorAll("tbody tr").length') == PAGE_ROWS
        assert page.run('document.querySelectorAll("*").length') < 1_500
        assert len(page.requests) == 3, "the page, its style and its script"
        assert page.bytes < 60_000

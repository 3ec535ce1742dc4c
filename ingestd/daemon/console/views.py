"""The views of the console, from the result of `Status.console_document`.

Every page begins with the health of the pipeline. The overview shows charts, the tables with the
largest lag, and the newest batches, errors and dead letters; each other view shows more of one
subject.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ingestd.daemon.console.chart import TimeSpan, chart
from ingestd.daemon.console.dead_letter_view import dead_letter_view
from ingestd.daemon.console.elements import (
    UNKNOWN,
    number,
    table,
    text,
    time_tag,
)
from ingestd.daemon.console.health import conditions
from ingestd.daemon.console.stored_dead_letters import StoredDeadLetters
from ingestd.daemon.console.table_details import TableDetails
from ingestd.daemon.console.table_view import compactions_table, table_view
from ingestd.daemon.samples import SAMPLE_SECONDS, by_step, total_lag

Document = Mapping[str, Any]
Query = Mapping[str, str]
"""The parameters of a request, each with its last value."""

ASSETS: Mapping[str, str] = {
    "/page.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
}
"""The other files of the console, with their content types."""
DEAD_LETTERS = "/dead-letters"
PAGE_ROWS = 100
"""Maximum number of tables, of topics and of partitions on one page."""
SPANS: Mapping[str, float] = {"15 min": 900.0, "1 h": 3600.0, "6 h": 21_600.0, "24 h": 86_400.0}
"""The times that the charts can show, in seconds."""
_CHARTS = (
    ("Lag", "records"),
    ("Freshness", "seconds"),
    ("Rate", "records a second"),
    ("Batch time", "seconds"),
)
_STEPS = 240
"""Maximum number of points of a chart."""
_FEW = 10
_NAMED = 3
_REACHABLE = {True: "reachable", False: "not reachable", None: "not polled yet"}
_SYMPTOMS = "Symptoms"


class _Topic(NamedTuple):
    """A topic with its partitions; `source` is the name of its source, `state` what is known."""

    source: str
    state: Document
    name: str
    partitions: Document


def asset(path: str) -> bytes:
    """Return the content of a file of the console, such as its style sheet.

    `path` is the path of its URL, a key of `ASSETS`.
    """
    return files("ingestd.daemon").joinpath("assets", path[1:]).read_bytes()


@cache
def _runbook() -> str:
    return asset("/runbook.html").decode()


def _first_steps(name: str) -> str:
    """Return a link to the part of the runbook about an alert or a class of errors."""
    if f'id="{name.lower()}"' not in _runbook():
        name = _SYMPTOMS
    return f'<a href="/runbook#{name.lower()}">First steps: {name}</a>'


def console_page(
    path: str, query: Query, status: Document, links: Mapping[str, str]
) -> bytes | None:
    """Return the HTML page of a view, or None if there is no view with this path.

    `query` has the parameters of the URL, and `status` is the result of `Status.console_document`.
    `links` maps the paths of pages outside of the console to their descriptions.
    """
    if path not in _VIEWS:
        return None
    title, view = _VIEWS[path]
    return _page(path, title, status, view(status, query), links)


def page_of_table(
    name: str, details: TableDetails | str, status: Document, links: Mapping[str, str]
) -> bytes:
    """Return the HTML page of a table; `details` is an error message if they could not be read.

    `status` is the document of /status. `links` maps the paths of pages outside of the console to
    their descriptions.
    """
    view = table_view(name, details) + compactions_table(status["maintenance"], name)
    return _page("/tables", name, status, view, links)


def page_of_dead_letters(
    letters: StoredDeadLetters | str, replay: str, status: Document, links: Mapping[str, str]
) -> bytes:
    """Return the HTML page of dead letters.

    `letters` is an error message if they could not be read. `replay` is the command that replays
    dead letters, without the options that select them. `status` is the document of /status. `links`
    maps the paths of pages outside of the console to their descriptions.
    """
    title, _ = _VIEWS[DEAD_LETTERS]
    return _page(DEAD_LETTERS, title, status, dead_letter_view(letters, replay), links)


def _page(path: str, title: str, status: Document, content: str, links: Mapping[str, str]) -> bytes:
    name = text(status["pipeline"])
    listed = "".join(
        f'<li><a href="{link}">{link}</a> {text(what)}</li>' for link, what in links.items()
    )
    current = ' aria-current="page"'
    navigation = "".join(
        f'<li><a href="{other}"{current if other == path else ""}>{label}</a></li>'
        for other, (label, _) in _VIEWS.items()
    )
    heading = "" if path == "/" else f"{text(title)} – "
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{heading}{name}: {text(status['state'])}</title>"
        '<link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script></head>'
        '<body><a class="skip" href="#status">To the content</a>'
        f'<nav aria-label="Views"><ul>{navigation}</ul></nav>'
        f'<main id="status">{_head(status)}{content}</main>'
        f'<footer><p id="live" role="status">as of loading</p><ul>{listed}</ul>'
        f"<p>ingestd {text(status['version'])}; times are UTC</p></footer></body></html>\n"
    ).encode()


def _head(status: Document) -> str:
    batch = status["batch"]
    running = ""
    if batch["running"] is not None:
        phases = ", ".join(f"{name} {spent:.1f} s" for name, spent in batch["phases"].items())
        running = f"; batch {batch['running']} for {batch['seconds']:.0f} s" + (
            f" ({phases})" if phases else ""
        )
    state = text(status["state"])
    items = "".join(
        f'<li class="{condition.level}">{text(condition.text)}'
        + (f" {_first_steps(condition.runbook)}" if condition.runbook else "")
        + "</li>"
        for condition in conditions(status)
    )
    return (
        f'<h1>{text(status["pipeline"])} <span class="state {state}">{state}</span></h1>'
        f'<ul class="health">{items}</ul>'
        f"<p>since {time_tag(status['since'])}, restarts: {status['restarts']}{text(running)}</p>"
    )


def _overview(status: Document, query: Query) -> str:
    recent, tables = status["recent"], status["tables"]
    slowest = sorted(tables.items(), key=lambda item: -_lag_order(item[1]))
    title = "Tables"
    if len(tables) > _FEW:
        title = f"Tables with the largest lag, {_FEW} of {len(tables):,}"
    return "".join(
        (
            _charts(status, query),
            _errors(recent["errors"][:3]),
            _tables(title, slowest[:_FEW], status["maintenance"]),
            _topics("Topics", _topics_of(status)) if len(tables) <= _FEW else "",
            _batches(recent["batches"][:_FEW]),
            _letters(recent["rejected"][:_FEW]),
        )
    )


def _charts(status: Document, query: Query) -> str:
    """Return the charts of the time until now that the query's `span` selects; default 1 hour."""
    asked = query.get("span", "")
    name = asked if asked in SPANS else "1 h"
    seconds = SPANS[name]
    step = max(seconds / _STEPS, SAMPLE_SECONDS)
    end = status["now"]
    span = TimeSpan(end - seconds, end, 3 * step)
    shown = by_step((sample for sample in status["samples"] if sample.at >= span.start), step)
    current = ' aria-current="true"'
    choices = "".join(
        f'<li><a href="/?{urlencode({"span": other})}"{current if other == name else ""}>{other}'
        "</a></li>"
        for other in SPANS
    )
    tables = [state["lag_seconds"] for state in status["tables"].values()]
    known = [lag for lag in tables if lag is not None]
    batches, rates = status["recent"]["batches"], status["recent"]["rates"]
    now = (
        total_lag(status["sources"]),
        max(known, default=None),
        rates[-1][1] if rates else None,
        batches[0]["seconds"].get("total") if batches else None,
    )
    points = zip(*((one.lag, one.freshness, one.rate, one.batch) for one in shown), strict=True)
    times = [one.at for one in shown]
    charts = (
        chart(title, unit, list(zip(times, values, strict=True)), span, current_value)
        for (title, unit), values, current_value in zip(
            _CHARTS, list(points) or [()] * len(_CHARTS), now, strict=True
        )
    )
    return (
        f'<nav aria-label="Time of the charts"><ul>{choices}</ul></nav>'
        f'<section class="charts" aria-label="the last {name}">{"".join(charts)}</section>'
    )


def _lag_order(state: Document) -> float:
    """Return the lag of a table in seconds; an unknown lag is infinite."""
    return _unknown_first(state["lag_seconds"])


def _unknown_first(lag: float | None) -> float:
    return float("inf") if lag is None else float(lag)


_SORT: Mapping[str, Callable[[tuple[str, Document]], Any]] = {
    "name": lambda item: item[0],
    "lag": lambda item: -_lag_order(item[1]),
    "committed": lambda item: item[1]["committed_at"] or "",
    "rows": lambda item: -item[1]["rows"],
    "files": lambda item: -item[1]["files"],
}


def _all_tables(status: Document, query: Query) -> str:
    """Return the tables that match the query's search, sorted and paged as the query asks."""
    search, behind = query.get("q", "").lower(), query.get("behind") == "1"
    order = query.get("sort", "name")
    items = [
        (name, state)
        for name, state in status["tables"].items()
        if search in name.lower() and not (behind and state["lag_seconds"] == 0)
    ]
    items.sort(key=_SORT.get(order, _SORT["name"]))
    page, pages = _asked_page(query, len(items))
    title = f"Tables, {len(items):,} of {len(status['tables']):,}"
    listed = _tables(title, items[_rows_of(page)], status["maintenance"])
    return _search_form(query, _SORT) + listed + _page_links("/tables", query, page, pages)


def _asked_page(query: Query, rows: int) -> tuple[int, int]:
    """Return the page that the query asks for, from 1 on, and the number of pages."""
    pages = max(-(-rows // PAGE_ROWS), 1)
    asked = query.get("page", "1")
    page = min(max(int(asked), 1), pages) if asked.isdecimal() and len(asked) < 7 else 1
    return page, pages


def _rows_of(page: int) -> slice:
    return slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS)


def _search_form(query: Query, orders: Iterable[str]) -> str:
    options = "".join(
        f"<option{' selected' if name == query.get('sort') else ''}>{name}</option>"
        for name in orders
    )
    checked = " checked" if query.get("behind") == "1" else ""
    return (
        '<form role="search"><label>Name <input type="search" name="q" '
        f'value="{text(query.get("q", ""))}"></label> '
        f'<label>Order by <select name="sort">{options}</select></label> '
        f'<label><input type="checkbox" name="behind" value="1"{checked}> only behind</label> '
        "<button>Show</button></form>"
    )


def _page_links(path: str, query: Query, page: int, pages: int) -> str:
    if pages == 1:
        return ""

    def link(to: int, label: str) -> str:
        if not 1 <= to <= pages:
            return ""
        return f'<a href="{path}?{text(urlencode({**query, "page": to}))}">{label}</a>'

    here = f"page {page} of {pages}"
    return (
        f'<nav aria-label="Pages"><p>{link(page - 1, "previous")} {here} '
        f"{link(page + 1, 'next')}</p></nav>"
    )


def _tables(title: str, tables: Iterable[tuple[str, Document]], maintenance: Document) -> str:
    runs, over = maintenance.get("tables", {}), maintenance.get("over_stop_trigger", ())
    rows = (
        (
            f'<a href="/tables/{quote(name)}">{text(name)}</a>',
            number(state["snapshot_id"]),
            time_tag(state["committed_at"]),
            number(state["lag_seconds"]),
            number(state["rows"]),
            number(state["files"]),
            number(runs.get(name, {}).get("level_0")),
            number(runs.get(name, {}).get("sorted_runs"))
            + (" <b>above the stop trigger</b>" if name in over else ""),
            text(state["result"]),
        )
        for name, state in tables
    )
    head = ("table", "snapshot", "committed", "lag in seconds", "rows since start",
            "files since start", "files in level 0", "most sorted runs", "result")  # fmt: skip
    numbers = (head[1], *head[3:8])
    return table("tables", title, head, rows, "no table", numbers=numbers)


def _topics_of(status: Document) -> list[_Topic]:
    return [
        _Topic(name, source, topic, partitions)
        for name, source in status["sources"].items()
        for topic, partitions in source["topics"].items() or ((UNKNOWN, {}),)
    ]


def _topics(title: str, topics: Iterable[_Topic]) -> str:
    rows = []
    for name, source, topic, partitions in topics:
        state = _REACHABLE[source["reachable"]]
        if topic in source["set_aside"]:
            state = f"<b>set aside</b>, {state}"
        link = f'<a href="/topics?{text(urlencode({"q": topic}))}">{text(topic)}</a>'
        lag = number(_topic_lag(partitions))
        rows.append((text(name), link, number(len(partitions) or None), lag, state))
    head = ("source", "topic", "partitions", "lag in records", "brokers")
    return table("topics", title, head, rows, "no source", numbers=head[2:4])


def _topic_lag(partitions: Document) -> int | None:
    lags = [partition["lag"] for partition in partitions.values()]
    return None if None in lags or not lags else sum(lags)


_TOPIC_SORT: Mapping[str, Callable[[_Topic], Any]] = {
    "name": lambda topic: topic.name,
    "lag": lambda topic: -_unknown_first(_topic_lag(topic.partitions)),
}


def _all_topics(status: Document, query: Query) -> str:
    """Return the topics that match the query's search, and partitions of those on this page.

    The partitions of a single topic have pages, too.
    """
    search, behind = query.get("q", ""), query.get("behind") == "1"
    known = _topics_of(status)
    found = [topic for topic in known if search.lower() in topic.name.lower()]
    found = [topic for topic in found if topic.name == search] or found
    found = [topic for topic in found if not (behind and _topic_lag(topic.partitions) == 0)]
    found.sort(key=_TOPIC_SORT.get(query.get("sort", "name"), _TOPIC_SORT["name"]))
    one = len(found) == 1
    page, pages = _asked_page(query, len(found[0].partitions) if one else len(found))
    shown = found if one else found[_rows_of(page)]
    partitions = [
        (topic.name, number, offsets)
        for topic in shown
        for number, offsets in topic.partitions.items()
    ]
    rows = partitions[_rows_of(page)] if one else partitions[:PAGE_ROWS]
    return "".join(
        (
            _search_form(query, _TOPIC_SORT),
            _topics(f"Topics, {len(found):,} of {len(known):,}", shown),
            _partitions(f"Partitions, {len(rows):,} of {len(partitions):,}", rows),
            _page_links("/topics", query, page, pages),
        )
    )


def _partitions(title: str, partitions: Iterable[tuple[str, str, Document]]) -> str:
    rows = (
        (
            f"{text(topic)}/{partition}",
            number(offsets["position"]),
            number(offsets["end"]),
            number(offsets["lag"]),
        )
        for topic, partition, offsets in partitions
    )
    head = ("topic/partition", "position in the tables", "end offset", "lag in records")
    return table("partitions", title, head, rows, "none is known", numbers=head[1:])


def _batches(batches: Iterable[Document]) -> str:
    rows = (
        (
            text(batch["batch_id"]),
            time_tag(batch["at"]),
            number(batch["records"]),
            number(batch["rejected"]),
            text(", ".join(f"{name} {spent:.2f}" for name, spent in batch["seconds"].items())),
            text(_some([f"{name}: {id_}" for name, id_ in batch["snapshots"].items()])),
        )
        for batch in batches
    )
    head = ("batch", "finished", "records", "rejected", "seconds by phase", "snapshots")
    return table(
        "batches",
        "Batches",
        head,
        rows,
        "no batch with records yet",
        numbers=head[2:4],
    )


def _some(names: Sequence[str]) -> str:
    """Return the first few names, separated by commas, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _errors(errors: Sequence[Document]) -> str:
    if not errors:
        return ""
    items = "".join(
        f"<li><b>{text(error['type'])}</b> {time_tag(error['at'])}<br>{text(error['message'])} "
        f"{_first_steps(error['type'])}</li>"
        for error in errors
    )
    return f'<section class="trouble"><h2>Errors</h2><ul>{items}</ul></section>'


def _all_errors(status: Document, _: Query) -> str:
    listed = _errors(status["recent"]["errors"])
    return listed or '<p class="empty">No error in the last 24 hours.</p>'


def _letters(rejected: Sequence[Document]) -> str:
    rows = (
        (
            time_tag(record["at"]),
            text(f"{record['topic']}/{record['partition']}@{record['offset']}"),
            text(f"{record['stage']}: {record['reason']}"),
            text(record["message"]),
        )
        for record in rejected
    )
    head = ("time", "topic/partition@offset", "reason", "what is wrong")
    return table("dead-letters", "Dead letters", head, rows, "none", long=head[3:])


def _maintenance(status: Document, _: Query) -> str:
    maintenance = status["maintenance"]
    changes = (
        (
            text(schema["table"]),
            time_tag(schema["at"]),
            number(schema["schema_id"]),
            text(schema["what"]),
        )
        for schema in status["recent"]["schemas"]
    )
    head = ("table", "time", "schema", "what changed")
    schemas = table(
        "schemas", "Schema changes", head, changes, "none since the start", long=head[3:]
    )
    return schemas + compactions_table(maintenance)


def _configuration(status: Document, _: Query) -> str:
    rows = (
        (text(setting.key), text(setting.value) or UNKNOWN, text(setting.origin))
        for setting in status["configuration"]
    )
    head = ("key", "value", "set in")
    return table("configuration", "Configuration in effect", head, rows, "unknown", long=head[1:2])


_VIEWS: Mapping[str, tuple[str, Callable[[Document, Query], str]]] = {
    "/": ("Overview", _overview),
    "/tables": ("Tables", _all_tables),
    "/topics": ("Topics", _all_topics),
    "/batches": ("Batches", lambda status, _: _batches(status["recent"]["batches"])),
    DEAD_LETTERS: ("Dead letters", lambda status, _: _letters(status["recent"]["rejected"])),
    "/errors": ("Errors", _all_errors),
    "/changes": ("Schemas and compactions", _maintenance),
    "/configuration": ("Configuration", _configuration),
    "/runbook": ("Runbook", lambda *_: f'<div class="runbook">{_runbook()}</div>'),
}

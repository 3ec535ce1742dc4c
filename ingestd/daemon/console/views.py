"""The views of the console, from the result of `Status.console_document`.

Every page begins with the health of the pipeline. The overview shows charts, the tables with the
largest lag, and the newest batches, errors and dead letters; each other view shows more of one
subject.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from ingestd.daemon.console.chart import TimeSpan, chart
from ingestd.daemon.console.dead_letter_view import dead_letter_view
from ingestd.daemon.console.elements import (
    UNKNOWN,
    change,
    number,
    table,
    text,
    time_tag,
)
from ingestd.daemon.console.health import conditions
from ingestd.daemon.console.stored_dead_letters import StoredDeadLetters
from ingestd.daemon.console.table_details import TableDetails
from ingestd.daemon.console.table_view import table_view
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
"""Maximum number of tables on one page, and of partitions that are shown of one topic."""
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
_NO_COMPACTION = {False: "none since the start", True: "done by another process"}
_REACHABLE = {True: "reachable", False: "not reachable", None: "not polled yet"}
_RUNBOOK = "docs/alerts.md"


def asset(path: str) -> bytes:
    """Return the content of one of `ASSETS` by its path."""
    return files("ingestd.daemon").joinpath("assets", path[1:]).read_bytes()


def console_page(
    path: str, query: Query, status: Document, links: Mapping[str, str]
) -> bytes | None:
    """Return the HTML page of a view, or None if there is no view with this path.

    `status` is the result of `Status.console_document`. `links` maps the paths of pages outside of
    the console to their descriptions.
    """
    if path not in _VIEWS:
        return None
    title, view = _VIEWS[path]
    return _page(path, title, status, view(status, query), links)


def page_of_table(
    name: str, details: TableDetails | str, status: Document, links: Mapping[str, str]
) -> bytes:
    """Return the HTML page of a table; `details` is an error message if they could not be read."""
    return _page("/tables", name, status, table_view(name, details), links)


def page_of_dead_letters(
    letters: StoredDeadLetters | str, replay: str, status: Document, links: Mapping[str, str]
) -> bytes:
    """Return the HTML page of dead letters.

    `letters` is an error message if they could not be read. `replay` is the command that replays
    dead letters, without the options that select them.
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
        + (
            f" <small>First steps: {_RUNBOOK}, “{condition.runbook}”.</small>"
            if condition.runbook
            else ""
        )
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
            _topics(status, query) if len(tables) <= _FEW else "",
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
    lag = state["lag_seconds"]
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
    pages = max(-(-len(items) // PAGE_ROWS), 1)
    asked = query.get("page", "1")
    page = min(max(int(asked), 1), pages) if asked.isdecimal() and len(asked) < 7 else 1
    start = (page - 1) * PAGE_ROWS
    title = f"Tables, {len(items):,} of {len(status['tables']):,}"
    listed = _tables(title, items[start : start + PAGE_ROWS], status["maintenance"])
    return _search_form(query) + listed + _page_links(query, page, pages)


def _search_form(query: Query) -> str:
    options = "".join(
        f"<option{' selected' if name == query.get('sort') else ''}>{name}</option>"
        for name in _SORT
    )
    checked = " checked" if query.get("behind") == "1" else ""
    return (
        '<form role="search"><label>Name <input type="search" name="q" '
        f'value="{text(query.get("q", ""))}"></label> '
        f'<label>Order by <select name="sort">{options}</select></label> '
        f'<label><input type="checkbox" name="behind" value="1"{checked}> only behind</label> '
        "<button>Show</button></form>"
    )


def _page_links(query: Query, page: int, pages: int) -> str:
    if pages == 1:
        return ""

    def link(to: int, label: str) -> str:
        if not 1 <= to <= pages:
            return ""
        return f'<a href="/tables?{text(urlencode({**query, "page": to}))}">{label}</a>'

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


def _topics(status: Document, _: Query) -> str:
    rows = []
    for name, source in status["sources"].items():
        for topic, partitions in source["topics"].items() or ((UNKNOWN, {}),):
            lags = [partition["lag"] for partition in partitions.values()]
            lag = None if None in lags or not lags else sum(lags)
            state = _REACHABLE[source["reachable"]]
            if topic in source["set_aside"]:
                state = f"<b>set aside</b>, {state}"
            count = number(len(partitions) or None)
            rows.append((text(name), text(topic), count, number(lag), state))
    head = ("source", "topic", "partitions", "lag in records", "brokers")
    return table("topics", "Topics", head, rows, "no source", numbers=head[2:4])


def _all_topics(status: Document, query: Query) -> str:
    partitions = (
        (
            f"{text(topic)}/{partition}",
            number(offsets["position"]),
            number(offsets["end"]),
            number(offsets["lag"]),
        )
        for source in status["sources"].values()
        for topic, partitions in source["topics"].items()
        for partition, offsets in list(partitions.items())[:PAGE_ROWS]
    )
    head = ("topic/partition", "position in the tables", "end offset", "lag in records")
    shown = table("partitions", "Partitions", head, partitions, "none is known", numbers=head[1:])
    return _topics(status, query) + shown


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
        f"<li><b>{text(error['type'])}</b> {time_tag(error['at'])}<br>{text(error['message'])}</li>"
        for error in errors
    )
    return f'<section class="trouble"><h2>Errors</h2><ul>{items}</ul></section>'


def _all_errors(status: Document, _: Query) -> str:
    first_steps = f"<p>First steps by error: {_RUNBOOK}, “Symptoms”.</p>"
    listed = _errors(status["recent"]["errors"])
    return (listed or '<p class="empty">No error in the last 24 hours.</p>') + first_steps


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
    if not maintenance:
        return schemas
    compactions = (
        (
            text(compaction["table"]),
            time_tag(compaction["at"]),
            text(": ".join(filter(None, (compaction["result"], compaction["message"])))),
            number(compaction.get("seconds")),
            change(compaction, "files_before", "files_after"),
            change(compaction, "bytes_read", "bytes_written"),
            number(compaction.get("snapshot_id")),
        )
        for compaction in maintenance["compactions"]
    )
    columns = ("table", "finished", "result", "seconds", "files", "bytes", "snapshot")
    nothing = _NO_COMPACTION[maintenance["mode"] == "off"]
    return schemas + table(
        "compactions",
        "Compactions",
        columns,
        compactions,
        nothing,
        numbers=columns[3:],
        long=columns[2:3],
    )


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
}

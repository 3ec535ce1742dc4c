"""The status page at /, as HTML that works without scripts."""

import html
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from ingestd.daemon.recent_history import total_lag

_HOUR = 3600.0
_SHORTEST = 300.0
_SHOWN_BATCHES = 12
_NO_COMPACTION = {False: "none since the start", True: "done by another process"}
ASSETS: Mapping[str, str] = {
    "/page.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
}
"""The other files of the page, with their content types."""


def asset(path: str) -> bytes:
    """Return the content of one of `ASSETS` by its path."""
    return files("ingestd.daemon").joinpath("assets", path[1:]).read_bytes()


def status_page(status: Mapping[str, Any], links: Mapping[str, str]) -> bytes:
    """Return the HTML page for a status document; `links` maps other pages to descriptions."""
    name = html.escape(status["pipeline"])
    listed = "".join(
        f'<li><a href="{path}">{path}</a> {html.escape(text)}</li>' for path, text in links.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}: {html.escape(status['state'])}</title>"
        '<link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script></head>'
        f'<body><a class="skip" href="#tables">To the tables</a>'
        f'<main id="status">{_main(status)}</main>'
        f'<footer><p id="live" role="status">as of loading</p><ul>{listed}</ul>'
        f"<p>ingestd {html.escape(status['version'])}; times are UTC</p></footer></body></html>\n"
    ).encode()


def _main(status: Mapping[str, Any]) -> str:
    recent = status["recent"]
    return "".join(
        (
            _head(status),
            _plots(status, recent),
            _trouble(recent["errors"]),
            _tables(status["tables"], status["maintenance"]),
            _sources(status["sources"]),
            _batches(recent["batches"]),
            _schemas(recent["schemas"]),
            _compactions(status["maintenance"]),
            _rejected(recent["rejected"]),
        )
    )


def _head(status: Mapping[str, Any]) -> str:
    batch = status["batch"]
    running = "waits for records"
    if status["maintenance"].get("throttled_by"):
        running = "waits for compactions"
    if batch["running"] is not None:
        phases = ", ".join(f"{name} {spent:.1f} s" for name, spent in batch["phases"].items())
        running = f"batch {batch['running']} for {batch['seconds']:.0f} s" + (
            f" ({phases})" if phases else ""
        )
    state = html.escape(status["state"])
    return (
        f"<h1>{html.escape(status['pipeline'])} "
        f'<span class="state {state}">{state}</span></h1>'
        f"<p>since {_time_tag(status['since'])}, restarts: {status['restarts']}; "
        f"{html.escape(running)}</p>"
    )


def _plots(status: Mapping[str, Any], recent: Mapping[str, Any]) -> str:
    lag = total_lag(status["sources"])
    rate = recent["rates"][-1][1] if recent["rates"] else None
    shown = (
        ("Lag in records", lag, recent["lags"]),
        ("Records a second", rate, recent["rates"]),
    )
    return (
        '<section class="plots" aria-label="the last hour">'
        + "".join(
            f"<figure><figcaption>{name} <b>{_number(now)}</b></figcaption>"
            f"{sparkline(points, name, _span(points))}</figure>"
            for name, now, points in shown
        )
        + "</section>"
    )


def _span(points: Sequence[tuple[float, float]]) -> float:
    """Return the seconds that a plot covers: up to an hour, depending on the points."""
    covered = points[-1][0] - points[0][0] if points else 0.0
    return min(max(covered, _SHORTEST), _HOUR)


def _trouble(errors: Sequence[Mapping[str, Any]]) -> str:
    if not errors:
        return ""
    items = "".join(
        f"<li><b>{html.escape(error['type'])}</b> {_time_tag(error['at'])}<br>"
        f"{html.escape(error['message'])}</li>"
        for error in errors
    )
    return f'<section class="trouble"><h2>Errors</h2><ul>{items}</ul></section>'


def _tables(tables: Mapping[str, Any], maintenance: Mapping[str, Any]) -> str:
    sorted_runs, over = maintenance.get("tables", {}), maintenance.get("over_stop_trigger", ())
    rows = (
        (
            html.escape(name),
            _number(table["snapshot_id"]),
            _time_tag(table["committed_at"]),
            _number(table["lag_seconds"]),
            _number(table["rows"]),
            _number(table["files"]),
            _number(sorted_runs.get(name, {}).get("level_0")),
            _number(sorted_runs.get(name, {}).get("sorted_runs"))
            + (" <b>above the stop trigger</b>" if name in over else ""),
            html.escape(table["result"]),
        )
        for name, table in tables.items()
    )
    head = ("table", "snapshot", "committed", "lag in seconds", "rows since start",
            "files since start", "files in level 0", "most sorted runs", "result")  # fmt: skip
    return _table("tables", "Tables", head, rows, "no table has been committed to yet")


def _sources(sources: Mapping[str, Any]) -> str:
    rows = []
    for name, source in sources.items():
        states = {True: "reachable", False: "not reachable", None: "not polled yet"}
        for topic, partitions in source["topics"].items() or (("", {}),):
            lags = [partition["lag"] for partition in partitions.values()]
            lag = None if None in lags or not lags else sum(lags)
            cells = (html.escape(name), html.escape(topic), _number(len(partitions)))
            rows.append((*cells, _number(lag), states[source["reachable"]]))
    head = ("source", "topic", "partitions", "lag in records", "brokers")
    return _table("topics", "Topics", head, rows, "no source")


def _batches(batches: Sequence[Mapping[str, Any]]) -> str:
    rows = (
        (
            str(batch["batch_id"]),
            _time_tag(batch["at"]),
            _number(batch["records"]),
            _number(batch["rejected"]),
            html.escape(
                ", ".join(f"{name} {spent:.2f}" for name, spent in batch["seconds"].items())
            ),
            html.escape(", ".join(f"{name}: {id_}" for name, id_ in batch["snapshots"].items())),
        )
        for batch in batches[:_SHOWN_BATCHES]
    )
    head = ("batch", "finished", "records", "rejected", "seconds by phase", "snapshots")
    return _table("batches", "Batches", head, rows, "no batch with records yet")


def _schemas(changes: Sequence[Mapping[str, Any]]) -> str:
    if not changes:
        return ""
    rows = (
        (
            html.escape(change["table"]),
            _time_tag(change["at"]),
            _number(change["schema_id"]),
            html.escape(change["what"]),
        )
        for change in changes[:_SHOWN_BATCHES]
    )
    head = ("table", "time", "schema", "what changed")
    return _table("schemas", "Schema changes", head, rows, "")


def _compactions(maintenance: Mapping[str, Any]) -> str:
    if not maintenance:
        return ""
    rows = (
        (
            html.escape(compaction["table"]),
            _time_tag(compaction["at"]),
            html.escape(": ".join(filter(None, (compaction["result"], compaction["message"])))),
            _number(compaction.get("seconds")),
            _change(compaction, "files_before", "files_after"),
            _change(compaction, "bytes_read", "bytes_written"),
            _number(compaction.get("snapshot_id")),
        )
        for compaction in maintenance["compactions"][:_SHOWN_BATCHES]
    )
    head = ("table", "finished", "result", "seconds", "files", "bytes", "snapshot")
    return _table(
        "compactions", "Compactions", head, rows, _NO_COMPACTION[maintenance["mode"] == "off"]
    )


def _rejected(rejected: Sequence[Mapping[str, Any]]) -> str:
    rows = (
        (
            _time_tag(rejected_record["at"]),
            html.escape(
                f"{rejected_record['topic']}/{rejected_record['partition']}@{rejected_record['offset']}"
            ),
            html.escape(f"{rejected_record['stage']}: {rejected_record['reason']}"),
            html.escape(rejected_record["message"]),
        )
        for rejected_record in rejected
    )
    head = ("time", "topic/partition@offset", "reason", "what is wrong")
    return _table("dead-letters", "Dead letters", head, rows, "none since the start")


def _table(
    anchor: str, title: str, head: Sequence[str], rows: Iterable[Sequence[str]], nothing: str
) -> str:
    """Return a section with a table of HTML cells, or with the text `nothing` if it has no rows."""
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    )
    columns = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    inside = (
        f'<div class="wide" tabindex="0" role="region" aria-labelledby="{anchor}"><table><thead>'
        f"<tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
        if body
        else f'<p class="empty">{html.escape(nothing)}</p>'
    )
    return f'<section><h2 id="{anchor}">{html.escape(title)}</h2>{inside}</section>'


def _change(document: Mapping[str, Any], before: str, after: str) -> str:
    return f"{_number(document.get(before))} to {_number(document.get(after))}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _time_tag(at: float | str) -> str:
    moment = datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at, UTC)
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:%Y-%m-%d %H:%M:%S}</time>'


_WIDTH = 480
_HEIGHT = 72


def sparkline(points: Sequence[tuple[float, float]], name: str, span: float) -> str:
    """Return an SVG plot of the last `span` seconds, with a summary as text for screen readers.

    Points are (seconds, value), oldest first; for fewer than two, a sentence is returned.
    """
    if len(points) < 2:
        return '<p class="empty">not enough data yet</p>'
    end = points[-1][0]
    shown = [point for point in points if end - point[0] <= span]
    top = max(value for _, value in shown) or 1.0
    path = " ".join(
        f"{_WIDTH - (end - at) / span * _WIDTH:.1f},{_HEIGHT - 2 - value / top * (_HEIGHT - 4):.1f}"
        for at, value in shown
    )
    now, minutes = shown[-1][1], (end - shown[0][0]) / 60
    words = f"{name}: now {now:,.0f}, at most {top:,.0f}, over {minutes:.0f} min"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{html.escape(words)}"><polyline points="{path}"/></svg>'
    )

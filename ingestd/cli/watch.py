"""`ingestd watch`: show a running daemon, live on a terminal or as lines in a pipe."""

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ingestd.cli.daemon_status import DaemonAddress, DaemonSilentError, Document
from ingestd.cli.output import AsJson, say
from ingestd.log import printable

_Polls: TypeAlias = Iterator[tuple[Document, str | None]]
"""The status at each poll and None, or the previous status and why the daemon did not respond."""
_BARS = "▁▂▃▄▅▆▇█"
_SHOWN_POINTS = 40
_SHOWN_TABLES = 20
_SHOWN_ERRORS = 3
_GOOD = {"running": "green", "starting": "yellow", "backoff": "yellow"}


def watch(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="URL of the daemon (`http.listen`).")
    ] = "http://127.0.0.1:8080",
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds between two requests.")
    ] = 2.0,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, help="Number of requests; without it until Ctrl-C."),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option("--ca", help="CA certificates to trust, with https.")
    ] = None,
    auth_file: Annotated[
        Path | None, typer.Option("--auth-file", help="File with the bearer token.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a running daemon does: state, rate, lag, batches, tables, errors.

    On a terminal the view is updated until Ctrl-C; elsewhere each request prints a line, with
    --json the whole status as one line of JSON. After the first response, the command keeps
    polling a daemon that does not respond.

    **Examples**

    ingestd watch http://ingestd.data:8080 --interval 10

    ingestd watch https://ingestd.data:8443 --ca ca.pem --auth-file token --count 1 --json
    """
    polls = _polls(DaemonAddress(url, ca, auth_file), interval, count)
    try:
        _show(polls, as_json=as_json)
    except KeyboardInterrupt:
        if count is not None:
            raise  # the command was to end by itself


def _show(polls: _Polls, *, as_json: bool) -> None:
    if as_json:
        for document, _ in polls:
            _line(json.dumps(document, ensure_ascii=False))
    elif sys.stdout.isatty():
        _live(polls)
    else:
        for document, note in polls:
            _line(status_line(document) if note is None else f"silent: {note}")


def _polls(daemon: DaemonAddress, interval: float, count: int | None) -> _Polls:
    """Yield the status and None, or without a response the previous status and the reason.

    Raises DaemonSilentError if there is no response to the first request.
    """
    document = daemon.status()
    yield document, None
    left = None if count is None else count - 1
    while left is None or left > 0:
        time.sleep(interval)
        left = None if left is None else left - 1
        try:
            document = daemon.status()
        except DaemonSilentError as error:
            yield document, error.message
        else:
            yield document, None


def _live(polls: _Polls) -> None:
    with Live(console=Console(), auto_refresh=False, screen=False) as view:
        for document, note in polls:
            view.update(status_view(document, note), refresh=True)


def _line(text: str) -> None:
    say(text)


def status_line(document: Document) -> str:
    """Summarize the status in one line of `name=value`; an unknown value is -."""
    recent = document["recent"]
    words = {
        "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "pipeline": document["pipeline"],
        "state": document["state"],
        "ready": str(document["ready"]).lower(),
        "batch": document["batch"]["finished"],
        "records_per_second": _last(recent["rates"]),
        "lag": _lag(document),
        "lag_seconds": _lag_seconds(document),
        "restarts": document["restarts"],
        "rejected": sum(finished["rejected"] for finished in recent["batches"]),
    }
    return " ".join(f"{name}={_plain(value)}" for name, value in words.items())


def status_view(document: Document, note: str | None = None) -> RenderableType:
    """Return the status as a view for the terminal; `note` says why it is outdated, if it is."""
    state = str(document["state"])
    recent = document["recent"]
    head = Text.assemble(
        (printable(str(document["pipeline"])), "bold"),
        "  ",
        (state, f"bold {_GOOD.get(state, 'red')}"),
        f" since {printable(str(document['since']))}",
        f"  restarts {document['restarts']}",
        f"  version {printable(str(document['version']))}",
    )
    lines: list[RenderableType] = [head, _batch(document)]
    for title, points in (("records/s", recent["rates"]), ("lag", recent["lags"])):
        lines.append(_plot(title, [float(value) for _, value in points]))
    lines += [Text(""), _tables(document), Text(""), _sources(document)]
    lines += [
        Text(f"{error['type']}: {' '.join(printable(error['message']).split())}", "red")
        for error in recent["errors"][:_SHOWN_ERRORS]
    ]
    if note:
        lines.append(Text(printable(note), "yellow"))
    return Group(*lines)


def _batch(document: Document) -> Text:
    batch = document["batch"]
    done = f"batch {_plain(batch['finished'])} done"
    if batch["running"] is None:
        return Text(f"{done}, none under way")
    phases = ", ".join(f"{name} {spent:.1f} s" for name, spent in (batch["phases"] or {}).items())
    return Text(f"{done}, batch {batch['running']} for {batch['seconds']:.1f} s  {phases}")


def _plot(title: str, values: list[float]) -> Text:
    shown = values[-_SHOWN_POINTS:]
    top = max(shown, default=0.0)
    bars = "".join(
        _BARS[int(value / top * (len(_BARS) - 1))] if top else _BARS[0] for value in shown
    )
    newest = _plain(shown[-1]) if shown else "-"
    return Text.assemble(f"{title:<10}", (bars, "cyan"), f" {newest}")


def _tables(document: Document) -> Table:
    table = _table("table", "snapshot", "rows", "files", "lag")
    tables = list(document["tables"].items())
    for name, state in tables[:_SHOWN_TABLES]:
        lag = state.get("lag_seconds")
        table.add_row(
            Text(printable(name)),
            _plain(state["snapshot_id"]),
            _plain(state["rows"]),
            _plain(state["files"]),
            "-" if lag is None else f"{lag:.1f} s",
        )
    if len(tables) > _SHOWN_TABLES:
        table.add_row(Text(f"and {len(tables) - _SHOWN_TABLES} more"))
    return table


def _sources(document: Document) -> Table:
    table = _table("source", "topics", "partitions", "lag")
    for name, source in document["sources"].items():
        partitions = [
            partition for topic in source["topics"].values() for partition in topic.values()
        ]
        reachable = "" if source["reachable"] is not False else " (does not respond)"
        lags = [partition["lag"] for partition in partitions]
        lag = None if not lags or None in lags else sum(lags)
        counts = (len(source["topics"]), len(partitions), lag)
        table.add_row(Text(printable(name) + reachable), *map(_plain, counts))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _lag(document: Document) -> int | None:
    lags = [
        partition["lag"]
        for source in document["sources"].values()
        for topic in source["topics"].values()
        for partition in topic.values()
    ]
    return None if not lags or None in lags else sum(lags)


def _lag_seconds(document: Document) -> float | None:
    known = [state.get("lag_seconds") for state in document["tables"].values()]
    return max((seconds for seconds in known if seconds is not None), default=None)


def _last(points: list[tuple[float, float]]) -> float | None:
    return float(points[-1][1]) if points else None


def _plain(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return printable(str(value))

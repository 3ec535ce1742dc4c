"""`ingestd watch`: show a running daemon, live on a terminal or as lines in a pipe."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.live import Live

from ingestd.cli.daemon_status import DaemonAddress, DaemonSilentError, Document
from ingestd.cli.output import AsJson, say
from ingestd.cli.watch_view import status_line, status_view

_Looks: TypeAlias = Iterator[tuple[Document, str | None]]
"""What was seen each time; where the daemon was silent the one before, and why."""


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

    On a terminal the view is updated until Ctrl-C; elsewhere a line is printed each time, with
    --json the whole status as one line of JSON. After the first response, a daemon that does not
    respond is waited for.

    **Examples**

    ingestd watch http://ingestd.data:8080 --interval 10

    ingestd watch https://ingestd.data:8443 --ca ca.pem --auth-file token --count 1 --json
    """
    looks = _looks(DaemonAddress(url, ca, auth_file), interval, count)
    try:
        _show(looks, as_json=as_json)
    except KeyboardInterrupt:
        if count is not None:
            raise  # it was to end by itself


def _show(looks: _Looks, *, as_json: bool) -> None:
    if as_json:
        for document, _ in looks:
            _line(json.dumps(document, ensure_ascii=False))
    elif sys.stdout.isatty():
        _live(looks)
    else:
        for document, note in looks:
            _line(status_line(document) if note is None else f"silent: {note}")


def _looks(daemon: DaemonAddress, interval: float, count: int | None) -> _Looks:
    """Yield the status; if the daemon does not respond, the previous one and the reason."""
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


def _live(looks: _Looks) -> None:
    with Live(console=Console(), auto_refresh=False, screen=False) as view:
        for document, note in looks:
            view.update(status_view(document, note), refresh=True)


def _line(text: str) -> None:
    say(text)

"""`ingestd watch`: show a running daemon, live on a terminal or as lines in a pipe."""

import http.client
import json
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import SplitResult, urlsplit

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ingestd.cli.keyboard import read_keys, single_keys
from ingestd.cli.output import AsJson, say
from ingestd.cli.watch_tables import (
    DETAIL_KEYS,
    KEYS,
    Document,
    TablesView,
    after_key,
    plain_table,
    table_detail,
    tables_list,
    value_text,
)
from ingestd.daemon.samples import total_lag
from ingestd.errors import ConfigError, IngestdError
from ingestd.log import printable
from ingestd.wording import utc_text

_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 64 << 20
_PATH = "/status"


class DaemonSilentError(IngestdError):
    """The daemon did not respond as expected; a later request may succeed."""


CaFile: TypeAlias = Annotated[
    Path | None, typer.Option("--ca", help="File of CA certificates to trust, for https.")
]


@dataclass(frozen=True, slots=True)
class DaemonAddress:
    """The URL of a daemon, and credentials for it.

    `ca_file` has the CA certificates that are trusted instead of the system's, `auth_file` the
    bearer token, which is read for each request. Raises ConfigError for an invalid URL.
    """

    url: str
    ca_file: Path | None = None
    auth_file: Path | None = None
    _parts: SplitResult = field(init=False, repr=False)

    def __post_init__(self) -> None:
        url = self.url if "://" in self.url else f"http://{self.url}"
        split_url = urlsplit(url)
        if (
            split_url.scheme not in ("http", "https")
            or not split_url.hostname
            or not _has_port(split_url)
        ):
            raise ConfigError(
                f"'{self.url}' is not the address of a daemon; write http://HOST:PORT"
            )
        object.__setattr__(self, "_parts", split_url)

    def status(self) -> Document:
        """Request /status, and return the JSON document.

        Raises DaemonSilentError if the daemon does not respond with a status, ConfigError if the
        token or the certificate is refused, or one of their files cannot be read.
        """
        return self._document(*self._get(_PATH))

    def page(self, path: str) -> str:
        """Request a page, and return its text, even if the response is an error.

        Raises DaemonSilentError if the daemon does not respond, ConfigError if the token or the
        certificate is refused, or one of their files cannot be read.
        """
        return self._get(path)[1].decode(errors="replace")

    def _get(self, path: str) -> tuple[int, bytes]:
        connection, headers = self._connection(), self._headers()
        try:
            connection.request("GET", self._parts.path.rstrip("/") + path, headers=headers)
            response = connection.getresponse()
            body = response.read(_MOST_BYTES)
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(f"{self.url}: {error.verify_message}; give --ca FILE") from error
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise DaemonSilentError(f"{self.url} does not respond: {error}") from error
        finally:
            connection.close()
        if response.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise ConfigError(f"{self.url} asks for its token: give --auth-file FILE")
        return response.status, body

    def _document(self, status: int, body: bytes) -> Document:
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if status != http.HTTPStatus.OK or not isinstance(document, dict):
            raise DaemonSilentError(
                f"{self.url} is not a daemon of ingestd: {_PATH} returned {status}"
            )
        return document

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
        trusted = None if self.ca_file is None else str(self.ca_file)
        try:
            context = ssl.create_default_context(cafile=trusted)
        except OSError as error:
            raise ConfigError(f"--ca {trusted}: {error.strerror or error}") from error
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=context)

    def _headers(self) -> dict[str, str]:
        if self.auth_file is None:
            return {}
        try:
            token = self.auth_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no ASCII text"
            raise ConfigError(f"--auth-file {self.auth_file}: {reason}") from error
        return {"Authorization": f"Bearer {token}"}


def _has_port(split_url: SplitResult) -> bool:
    """Return whether the port of a URL is valid or absent."""
    try:
        return split_url.port != 0
    except ValueError:
        return False


_Polls: TypeAlias = Iterator[tuple[Document, str | None]]
"""For each poll, the status and None, or the previous status and the reason of the failure."""
_BARS = "▁▂▃▄▅▆▇█"
_SHOWN_POINTS = 40
_OTHER_LINES = 14
"""Lines of the view besides those of tables, sources and errors."""
_LEAST_TABLES = 3
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
    ca: CaFile = None,
    auth_file: Annotated[
        Path | None, typer.Option("--auth-file", help="File with the bearer token.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a running daemon does: state, rate, lag, batches, tables, errors.

    On a terminal the view is updated until q or Ctrl-C: s sorts the tables by the next column,
    arrows select one, Enter opens it. Elsewhere each request prints a line, with --json the whole
    status as JSON. If the first request fails, the command ends; a later one is then repeated.

    **Examples**

    ingestd watch http://ingestd.data:8080 --interval 10

    ingestd watch https://ingestd.data:8443 --ca ca.pem --auth-file token --count 1 --json
    """
    daemon = DaemonAddress(url, ca, auth_file)
    try:
        if sys.stdout.isatty() and not as_json:
            _live(daemon, interval, count)
        else:
            _lines(_polls(daemon, interval, count), as_json=as_json)
    except KeyboardInterrupt:
        if count is not None:
            raise  # with --count the command ends by itself, so this is an interrupt


def _lines(polls: _Polls, *, as_json: bool) -> None:
    for document, note in polls:
        if as_json:
            say(json.dumps(document, ensure_ascii=False))
        else:
            say(status_line(document) if note is None else f"silent: {note}")


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _polls(
    daemon: DaemonAddress,
    interval: float,
    count: int | None,
    pause: Callable[[float], bool] = _sleep,
) -> _Polls:
    """Request the status `count` times, and yield it and None after each request.

    If a request fails, yield the previous status and the reason. `count` None is without limit.
    `pause` waits between two requests, and returns False to end. Raises DaemonSilentError if the
    first request fails.
    """
    document = daemon.status()
    yield document, None
    left = None if count is None else count - 1
    while left is None or left > 0:
        if not pause(interval):
            return
        left = None if left is None else left - 1
        try:
            document = daemon.status()
        except DaemonSilentError as error:
            yield document, error.message
        else:
            yield document, None


def _live(daemon: DaemonAddress, interval: float, count: int | None) -> None:
    has_keys = sys.stdin.isatty()
    with (
        Live(console=Console(), auto_refresh=False, screen=False) as live,
        single_keys() if has_keys else nullcontext(),
    ):
        screen = _Screen(live)
        pause = screen.wait_for_keys if has_keys else _sleep
        for document, note in _polls(daemon, interval, count, pause):
            screen.show(document, note)


class _Screen:
    """The live view: the status shown, and the state that the user changes with keys."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._view = TablesView()
        self._document: Document = {}
        self._note: str | None = None

    def show(self, document: Document, note: str | None) -> None:
        """Show a status; `note` states why it is outdated, if it is."""
        self._document, self._note = document, note
        view = status_view(document, note, self._view, self._live.console.height)
        self._live.update(view, refresh=True)

    def wait_for_keys(self, seconds: float) -> bool:
        """Apply pressed keys to the view for `seconds`; return False if the user quits."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for key in read_keys(left):
                if key == "q":
                    return False
                self._view = after_key(self._document, self._view, key)
            self.show(self._document, self._note)
        return True


def status_line(document: Document) -> str:
    """Summarize the status in one line of `name=value`; an unknown value is -."""
    recent = document["recent"]
    words = {
        "at": utc_text(time.time()),
        "pipeline": document["pipeline"],
        "state": document["state"],
        "ready": str(document["ready"]).lower(),
        "batch": document["batch"]["finished"],
        "records_per_second": _last(recent["rates"]),
        "lag": total_lag(document["sources"]),
        "lag_seconds": _lag_seconds(document),
        "restarts": document["restarts"],
        "rejected": sum(finished["rejected"] for finished in recent["batches"]),
    }
    return " ".join(f"{name}={value_text(value)}" for name, value in words.items())


def status_view(
    document: Document,
    note: str | None = None,
    tables: TablesView = TablesView(),  # noqa: B008  (frozen)
    height: int = 40,
) -> RenderableType:
    """Return the status as a view for a terminal of `height` lines.

    `note` states why the status is outdated, if it is; `tables` is the state of the tables view.
    """
    state = str(document["state"])
    head = Text.assemble(
        (printable(str(document["pipeline"])), "bold"),
        "  ",
        (state, f"bold {_GOOD.get(state, 'red')}"),
        f" since {printable(str(document['since']))}",
        f"  restarts {document['restarts']}",
        f"  version {printable(str(document['version']))}",
    )
    if tables.is_open and tables.selected is not None:
        body, keys = [table_detail(document, tables.selected)], DETAIL_KEYS
    else:
        body, keys = _overview(document, tables, height), KEYS
    notes = [Text(printable(note), "yellow")] if note else []
    return Group(head, Text(""), *body, *notes, Text(keys, "dim"))


def _overview(document: Document, tables: TablesView, height: int) -> list[RenderableType]:
    recent = document["recent"]
    errors = recent["errors"][:_SHOWN_ERRORS]
    others = _OTHER_LINES + len(document["sources"]) + len(errors)
    lines: list[RenderableType] = [_batch(document)]
    rates, lags = recent["rates"], recent["lags"]
    lines.append(_plot("records/s", rates, rates[-1][1] if rates else None))
    lines.append(_plot("lag", lags, total_lag(document["sources"])))
    lines += [Text(""), tables_list(document, tables, max(_LEAST_TABLES, height - others))]
    lines += [Text(""), _sources(document)]
    return lines + [_error(error) for error in errors]


def _error(error: Document) -> Text:
    message = " ".join(printable(error["message"]).split())
    text = f"{utc_text(error['at'])} {error['type']}: {message}"
    return Text(text, "red", no_wrap=True, overflow="ellipsis")


def _batch(document: Document) -> Text:
    batch = document["batch"]
    done = f"batch {value_text(batch['finished'])} done"
    if batch["running"] is None:
        return Text(f"{done}, none under way")
    phases = ", ".join(f"{name} {spent:.1f} s" for name, spent in (batch["phases"] or {}).items())
    return Text(f"{done}, batch {batch['running']} for {batch['seconds']:.1f} s  {phases}")


def _plot(title: str, points: Sequence[Sequence[float]], newest: float | None) -> Text:
    shown = [float(value) for _, value in points[-_SHOWN_POINTS:]]
    top = max(shown, default=0.0)
    bars = "".join(
        _BARS[int(value / top * (len(_BARS) - 1))] if top else _BARS[0] for value in shown
    )
    return Text.assemble(f"{title:<10}", (bars, "cyan"), f" {value_text(newest)}")


def _sources(document: Document) -> Table:
    table = plain_table("source", "topics", "partitions", "lag")
    for name, source in document["sources"].items():
        partitions = [
            partition for topic in source["topics"].values() for partition in topic.values()
        ]
        reachable = "" if source["reachable"] is not False else " (does not respond)"
        lags = [partition["lag"] for partition in partitions]
        lag = None if not lags or None in lags else sum(lags)
        counts = (len(source["topics"]), len(partitions), lag)
        table.add_row(Text(printable(name) + reachable), *map(value_text, counts))
    return table


def _lag_seconds(document: Document) -> float | None:
    known = [state.get("lag_seconds") for state in document["tables"].values()]
    return max((seconds for seconds in known if seconds is not None), default=None)


def _last(points: list[tuple[float, float]]) -> float | None:
    return float(points[-1][1]) if points else None

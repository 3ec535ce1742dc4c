"""The page at / in a real browser: it follows without reloading, and is light or dark."""

import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.status import Status
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts
from tests.support.browser import browser, document_after, picture

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(browser() is None, reason="no Chromium on this machine"),
]


@pytest.fixture
def status() -> Status:
    status = Status("shop", "1.2.3", ["s"])
    status.enter("running")
    commit(status, "db.orders")
    return status


@pytest.fixture
def server(status: Status) -> Iterator[HttpServer]:
    server = HttpServer("127.0.0.1:0", status)
    server.start()
    yield server
    server.stop()


def commit(status: Status, table: str) -> None:
    counts = Counts()
    counts.rows[table, 0] = 1234
    status.batch_finished(
        BatchSummary("1", {}, (TableCommit(table, "committed", 1, 1, 0.1),), counts)
    )


def test_it_follows_without_reloading(server: HttpServer, status: Status, tmp_path: Path) -> None:
    """The second table comes only once the page has been asked for."""
    asked = status.document
    seen = threading.Event()

    def document_of_a_status_that_changes() -> dict[str, object]:
        if seen.is_set():
            commit(status, "db.customers")
        seen.set()
        return asked()

    status.document = document_of_a_status_that_changes  # type: ignore[method-assign]  # a change between two requests
    document = document_after(f"http://{server.address}/", tmp_path, 7)
    assert "db.customers" in document
    assert '<p id="live" role="status">live</p>' in document


def brightness(png: bytes) -> float:
    """Of the first pixel of an 8-bit PNG, 0 to 1; no filter changes the first pixel."""
    width, _, _, kind = struct.unpack(">IIBB", png[16:26])
    channels = {2: 3, 6: 4}[kind]
    data = b"".join(
        png[at + 8 : at + 8 + size] for at, size in chunks(png) if png[at + 4 : at + 8] == b"IDAT"
    )
    assert width > 0
    return sum(zlib.decompress(data)[1 : 1 + channels][:3]) / 765


def chunks(png: bytes) -> Iterator[tuple[int, int]]:
    at = 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4])
        yield at, size
        at += size + 12


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_light_and_dark(server: HttpServer, tmp_path: Path, dark: bool) -> None:
    file = tmp_path / "page.png"
    url = f"http://{server.address}/"
    picture(url, tmp_path / "profile", file, dark=dark, width=800, height=600)
    assert (brightness(file.read_bytes()) < 0.5) == dark

"""The pictures of the page in docs: `python -m tests.page.pictures` takes them again.

Each carries a fingerprint of the page it shows, so that a test can tell whether it is today's.
"""

import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ingestd.daemon.console.views import asset, console_page
from ingestd.daemon.http_server import HttpServer
from tests.page.page_scene import scene
from tests.support.browser import picture

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = {"page-light.png": False, "page-dark.png": True}
WIDTH, HEIGHT = 1280, 1640
_SIGNATURE = 8
_KEYWORD = b"page\0"


def fingerprint() -> bytes:
    """Of everything that a picture of the page depends on."""
    page = (console_page("/", {}, scene().console_document(), {}) or b"") + asset("/page.css")
    return hashlib.sha256(page).hexdigest().encode()


def chunks(png: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Kind, begin and size of the data of each chunk of a PNG."""
    at = _SIGNATURE
    while at < len(png):
        size = int.from_bytes(png[at : at + 4])
        yield png[at + 4 : at + 8], at + 8, size
        at += size + 12


def shown_in(png: bytes) -> bytes | None:
    """The fingerprint of the page that a picture shows."""
    texts = [png[at : at + size] for kind, at, size in chunks(png) if kind == b"tEXt"]
    return next((text[len(_KEYWORD) :] for text in texts if text.startswith(_KEYWORD)), None)


def marked(png: bytes, mark: bytes) -> bytes:
    """The picture with a fingerprint after its header."""
    _, at, size = next(chunks(png))
    end = at + size + 4
    data = b"tEXt" + _KEYWORD + mark
    chunk = (len(data) - 4).to_bytes(4) + data + zlib.crc32(data).to_bytes(4)
    return png[:end] + chunk + png[end:]


def take() -> None:
    """Write all pictures."""
    server = HttpServer("127.0.0.1:0", scene())
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, dark in PICTURES.items():
                file = Path(folder) / name
                picture(f"http://{server.address}/", Path(folder) / f"profile-{name}", file,
                        dark=dark, width=WIDTH, height=HEIGHT)  # fmt: skip
                (DOCS / name).write_bytes(marked(file.read_bytes(), fingerprint()))
    finally:
        server.stop()


if __name__ == "__main__":
    take()

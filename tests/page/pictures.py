"""The pictures of the console in docs: `python -m tests.page.pictures` takes them again.

With a folder as argument they are written there as PNG, which more programs show.

A file beside them has a fingerprint of each view, so that a test can tell whether they are today's.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from ingestd.daemon.console.table_details import DetailsReader
from ingestd.daemon.console.views import asset
from ingestd.daemon.http_access import HttpAccess
from ingestd.daemon.http_server import HttpServer, dead_letters_page, page, table_page
from ingestd.daemon.status import Status
from tests.page.page_scene import SceneTables, scene
from tests.support.browser import open_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "console"
FINGERPRINTS = FOLDER / "fingerprints.json"
VIEWS = {
    "overview": "/",
    "tables": "/tables",
    "table": "/tables/ods.account",
    "topics": "/topics",
    "batches": "/batches",
    "dead-letters": "/dead-letters",
    "errors": "/errors",
    "changes": "/changes",
    "configuration": "/configuration",
    "runbook": "/runbook",
}
LOOKS = {"light": (1280, False), "dark": (1280, True), "narrow": (320, False)}


def fingerprints() -> dict[str, str]:
    """Of everything that the pictures of a view depend on."""
    status, tables = scene(), cast("DetailsReader", SceneTables())
    style = asset("/page.css")
    return {
        name: hashlib.sha256(_html(path, status, tables) + style).hexdigest()
        for name, path in VIEWS.items()
    }


def _html(path: str, status: Status, tables: DetailsReader) -> bytes:
    if path == "/dead-letters":
        return dead_letters_page(status, tables, with_bytes=True).body
    if path.startswith("/tables/"):
        return table_page(path.removeprefix("/tables/"), status, tables).body
    path, _, query = path.partition("?")
    return page(path, status, query).body


@contextmanager
def served(status: Status) -> Iterator[str]:
    """The address of the console of a daemon, with invented tables."""
    tables = cast("DetailsReader", SceneTables())
    server = HttpServer("127.0.0.1:0", status, HttpAccess(), tables=tables)
    server.start()
    try:
        yield f"http://{server.address}"
    finally:
        server.stop()


def take(folder: Path = FOLDER, kind: str = "webp") -> None:
    """Write all pictures, `webp` or `png`."""
    folder.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as profile,
        served(scene()) as address,
        open_page(Path(profile)) as browser,
    ):
        for look, (width, dark) in LOOKS.items():
            browser.show(width=width, dark=dark)
            for name, path in VIEWS.items():
                browser.open(address + path)
                browser.run('document.querySelector("details")?.setAttribute("open", "")')
                (folder / f"{name}-{look}.{kind}").write_bytes(browser.picture(kind))
    (folder / FINGERPRINTS.name).write_text(json.dumps(fingerprints(), indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:]:
        take(Path(sys.argv[1]), "png")
    else:
        take()

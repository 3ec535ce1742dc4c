"""A real browser without a window: what it makes of a page, as its document or as a picture."""

import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def browser() -> str | None:
    """The program, None when the machine has none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def document_after(url: str, folder: Path, seconds: float, *flags: str) -> str:
    """The page's document as HTML, after its scripts have run for this many seconds of its time."""
    budget = f"--virtual-time-budget={int(seconds * 1000)}"
    return _run(folder, budget, *flags, "--dump-dom", url)


def picture(url: str, folder: Path, file: Path, *, dark: bool, width: int, height: int) -> None:
    """Write a PNG of the page."""
    scheme = ("--force-dark-mode", "--enable-features=WebUIDarkMode") if dark else ()
    size = f"--window-size={width},{height}"
    _run(folder, size, *scheme, f"--screenshot={file}", url)


def _run(folder: Path, *arguments: str) -> str:
    program = browser()
    assert program is not None
    command = [program, *_QUIET, f"--user-data-dir={folder}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout

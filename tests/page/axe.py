"""axe-core, which finds what a page of the browser makes hard to use; fetched with npm once."""

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from ingestd.dev.jars import cache_folder
from tests.support.browser import Page
from tests.support.made_once import alone

_PACKAGE = "axe-core@4.10.3"
_INTEGRITY = (
    "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
)
_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def axe_source() -> str | None:
    """The script, None when the machine has no npm."""
    npm = shutil.which("npm")
    home: Path = cache_folder() / "axe"
    archive = home / f"{_PACKAGE.replace('@', '-')}.tgz"
    with alone(home):
        if not archive.exists():
            if npm is None:
                return None
            home.mkdir(parents=True, exist_ok=True)
            command = [npm, "pack", _PACKAGE, "--silent", "--pack-destination", str(home)]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
    content = archive.read_bytes()
    assert base64.b64encode(hashlib.sha512(content).digest()).decode() == _INTEGRITY
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        script = files.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def findings(page: Page, source: str) -> list[tuple[str, str]]:
    """Rule and element of each violation of WCAG 2.2 AA in the page."""
    page.run(f"{source}; 0")
    rules = {"runOnly": list(_RULES), "resultTypes": ["violations"]}
    result: Any = page.run(f"axe.run({rules!r})")
    return [
        (violation["id"], node["html"][:200])
        for violation in result["violations"]
        for node in violation["nodes"]
    ]

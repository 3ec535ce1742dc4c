"""The library surface is typed: a strict checker takes the README's program, and finds mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.code_blocks import ROOT, shown

pytestmark = pytest.mark.slow  # in a new clone, whose cache is empty

MISTAKES = """
import ingestd.paimon as paimon

table = paimon.open(3)
table.to_arrow(colums=["id"])
table.to_arrow(snapshot="3")
number: int = table.name
paimon.opened("x")
"""


def complaints(text: str, folder: Path) -> list[str]:
    """What mypy --strict says of a program."""
    file = folder / "program.py"
    file.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ""]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / "program"), "--no-error-summary"]
    done = subprocess.run(
        [*command, "--follow-imports=silent", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line.partition(": error: ")[2] for line in done.stdout.splitlines() if "error" in line]


def test_the_program_of_the_readme_is_typed_and_mistakes_are_found(tmp_path: Path) -> None:
    good = shown("README.md", "import ingestd.paimon as paimon").text
    assert complaints(good, tmp_path) == []
    found = complaints(MISTAKES, tmp_path)
    for code in ("arg-type", "call-arg", "assignment", "attr-defined"):
        assert f"[{code}]" in " ".join(found)
    assert len(found) == 5

"""The page of guarantees names tests that exist, and the result of each."""

import ast
import re
from pathlib import Path

from tests.support.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def guarantees() -> list[list[str]]:
    """Return the cells of every row with a guarantee."""
    rows = (line for line in PAGE.read_text().splitlines() if line.startswith("| "))
    cells = ([cell.strip() for cell in row.strip("|").split(" | ")] for row in rows)
    return [row for row in cells if row[0] != "guarantee"]


def test_every_guarantee_has_a_test_and_the_result_of_its_last_run() -> None:
    assert len(guarantees()) > 15
    for row in guarantees():
        assert len(row) == 3, row
        assert NAMED.search(row[1]), row
        assert row[2], row


def test_the_tests_that_are_named_exist() -> None:
    missing = []
    for file, name in NAMED.findall(PAGE.read_text()):
        path = ROOT / file
        tree = syntax_tree(path) if path.exists() else ast.Module([], [])
        if name not in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}:
            missing.append(f"{file}::{name}")
    assert missing == []


def test_every_file_of_the_chaos_tests_is_named() -> None:
    named = {file for file, _ in NAMED.findall(PAGE.read_text())}
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests/chaos").glob("test_*.py")}
    assert files <= named

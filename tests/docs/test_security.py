"""Each defence on the page of security names a test that exists."""

import ast
import re
from pathlib import Path

from tests.support.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
DEFENDED = PAGE.partition("## Threats and defences")[2].partition("\n## ")[0]


def rows() -> list[list[str]]:
    """Threat, defence and test of every row."""
    lines = [line for line in DEFENDED.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines][1:]


def test_every_threat_has_a_defence_and_a_test_that_exists() -> None:
    assert len(rows()) > 20
    for threat, defence, tests in rows():
        assert threat, tests
        assert defence, tests
        _check_tests(tests)


def _check_tests(tests: str) -> None:
    for test in tests.split(", "):
        file, _, name = test.strip("` ").partition("::")
        assert (ROOT / file).exists(), test
        tree = syntax_tree(ROOT / file)
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not name or name in functions, test


def test_the_keys_that_are_named_exist() -> None:
    keys = set(re.findall(r"`(http\.[a-z-]+)`", PAGE))
    known = (ROOT / "docs" / "configuration.md").read_text()
    assert keys
    assert [key for key in keys if f"`{key}`" not in known] == []

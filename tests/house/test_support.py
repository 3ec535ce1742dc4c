"""What tests share is used by several of them, and is on one page."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.support.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
MODULES = {path.stem for path in SUPPORT.glob("*.py")}


def imported(path: Path) -> set[str]:
    """Names of modules that a file imports from tests.support."""
    return {
        alias.name
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ImportFrom) and node.module == "tests.support"
        for alias in node.names
    }


def users() -> dict[str, set[str]]:
    """By module: the files that import it, or start it as a program."""
    found = defaultdict(set)
    for folder in ("tests", "bench", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            named = set(re.findall(r"tests\.support\.(\w+)", text)) - {path.stem}
            for name in named | (imported(path) if "from tests.support import" in text else set()):
                found[name].add(path.relative_to(ROOT).as_posix())
    for name in re.findall(r"-m tests\.support\.(\w+)", (ROOT / "Makefile").read_text()):
        found[name].add("Makefile")
    return found


def test_every_module_has_several_users() -> None:
    """With one it is moved beside that user."""
    found = users()
    assert {name: found[name] for name in MODULES if len(found[name]) < 2} == {}


def test_the_page_lists_every_module_once() -> None:
    rows = [line for line in (SUPPORT / "README.md").read_text().splitlines() if line[:3] == "| `"]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(MODULES)

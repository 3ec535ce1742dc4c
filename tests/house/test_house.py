"""Rules of the house that no linter knows; each says what it wants and where it is broken."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ingestd"
LIBRARY_DOOR = PACKAGE / "paimon" / "__init__.py"
"""The one door that people import names from, so that `paimon.open(...)` can be written."""
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "base_utils", "constants"}
MACHINE = re.compile(
    r"/(?:tmp/w|work|root|home/[a-z]+|opt/wheels)/"
    r"|^--(?:extra-)?index-url|^--find-links|artifactory|nexus|jfrog|pypi-mirror|\.(?:internal|corp)(?:[:/]|$)",
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b|except Exception")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".lock", ".json", ".sh", ".java", ""}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def project_files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and path.suffix in TEXT and not any(p in HIDDEN for p in parts):
            yield path


HIDDEN = {
    ".git",
    ".venv",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".import_linter_cache",
    "build",
    "target",
    "dist",
    "demo",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_modules_have_at_most_600_lines() -> None:
    files = [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    long = {name(f): n for f in files if (n := len(f.read_text().splitlines())) > 600}
    assert long == {}


def test_a_property_is_described_by_a_noun() -> None:
    verbs = [
        f"{name(path)}:{function.lineno} {function.name}"
        for path in modules()
        for function in functions(syntax_tree(path))
        if any("property" in ast.unparse(decorator) for decorator in function.decorator_list)
        and (ast.get_docstring(function) or "").startswith("Return ")
    ]
    assert verbs == []


def test_functions_have_at_most_40_lines() -> None:
    long = {
        f"{name(path)}:{function.lineno} {function.name}": length(function)
        for path in modules()
        for function in functions(syntax_tree(path))
        if length(function) > 40
    }
    assert long == {}


def test_package_doors_hold_nothing_but_a_docstring() -> None:
    for path in set(PACKAGE.rglob("__init__.py")) - {LIBRARY_DOOR}:
        body = syntax_tree(path).body
        assert len(body) <= 1, name(path)
        assert body, f"{name(path)} has no docstring"
        assert ast.get_docstring(syntax_tree(path)), name(path)


def test_the_door_of_the_library_only_names_what_lives_elsewhere() -> None:
    """Names for the type checker and homes for the interpreter, the same ones, and nothing else."""
    tree = syntax_tree(LIBRARY_DOOR)
    kinds = [type(node).__name__ for node in tree.body]
    assert kinds == ["Expr", "Import", "ImportFrom", "If", "Assign"]
    typed, *_ = (node for node in tree.body if isinstance(node, ast.If))
    shown = {
        alias.asname: f"{line.module}.{alias.name}"
        for line in typed.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    homes, getter, lister = typed.orelse
    assert isinstance(homes, ast.Assign)
    assert isinstance(getter, ast.FunctionDef)
    assert isinstance(lister, ast.FunctionDef)
    below = "ingestd.paimon.library."
    found = {name: below + home for name, home in ast.literal_eval(homes.value).items()}
    assert found == shown
    names = tree.body[-1]
    assert isinstance(names, ast.Assign)
    assert set(ast.literal_eval(names.value)) == shown.keys()


def test_every_module_says_what_it_is_for() -> None:
    silent = [name(p) for p in modules() if not ast.get_docstring(syntax_tree(p))]
    assert silent == []


def test_no_module_is_a_junk_drawer() -> None:
    drawers = [name(path) for path in modules() if DRAWERS & {path.stem, *path.parts}]
    assert drawers == []


def test_packages_have_an_inhabitant() -> None:
    empty = [
        name(listener.parent)
        for listener in PACKAGE.rglob("__init__.py")
        if not any(
            p for p in listener.parent.iterdir() if p != listener and not p.name.startswith("__")
        )
    ]
    assert empty == []


def test_unit_tests_mirror_the_package() -> None:
    strangers = []
    for path in (ROOT / "tests" / "unit").rglob("test_*.py"):
        folder = PACKAGE / path.relative_to(ROOT / "tests" / "unit").parent
        subject = path.stem.removeprefix("test_")
        if not any(subject.startswith(module.stem) for module in folder.glob("[!_]*.py")):
            strangers.append(name(path))
    assert strangers == [], "no module of the same name in ingestd/"


def test_folders_of_tests_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("pattern", [MACHINE, UNFINISHED], ids=["machine", "unfinished"])
def test_nothing_of_a_machine_and_nothing_unfinished_stays(pattern: re.Pattern[str]) -> None:
    found = [
        f"{name(path)}:{number}: {line.strip()[:100]}"
        for path in project_files()
        if path != Path(__file__) and (pattern is MACHINE or path.suffix == ".py")
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_type_ignores_name_their_code_and_a_reason() -> None:
    good = re.compile(r"# type: ignore\[[a-z, -]+\]  # \S")
    bad = [
        f"{name(path)}:{number}"
        for path in modules()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "type: ignore" in line and not good.search(line)
    ]
    assert bad == []


def test_ci_runs_what_the_readme_promises() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_architecture_fits_on_a_page() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text().splitlines()) <= 200


_COUNTED = re.compile(r" (row|file|message|topic|table|warning|column|bucket)s\b")
_NEVER_1 = {
    "ingestd/cdc/json/table_messages.py",
    "ingestd/kafka/offset_ranges.py",
    "ingestd/paimon/format/orc.py",
}
"""Modules with a text whose number is a limit, or above one."""


def test_no_text_says_1_rows() -> None:
    """A number with its noun is a call of `counted`."""
    wrong = []
    for path in modules():
        if name(path) in _NEVER_1:
            continue
        for text in ast.walk(syntax_tree(path)):
            if not isinstance(text, ast.JoinedStr):
                continue
            for value, after in pairwise(text.values):
                if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                named = isinstance(value.value, ast.Name) and value.value.id.isupper()
                if _COUNTED.match(str(after.value)) and not named:
                    wrong.append(f"{name(path)}:{text.lineno} {after.value}")
    assert wrong == []

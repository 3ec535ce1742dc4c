"""Words that mean nothing in this field are in no text, and a class has a name of its own.

Names and prose of the whole tree; history (CHANGELOG.md) and golden files are left out.
"""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TEXTS = ("*.py", "*.rs", "*.md", "*.yaml", "*.tpl", "Makefile", "Dockerfile")
_FOLDERS = (".ci", "bench", "config", "docs", "helm", "ingestd", "native", "tests")
_OTHERS = re.compile(r"/(golden|target|__pycache__|plots)/")
_PRIVATE = re.compile(
    r"\b(nurser(y|ies)|upkeep|restate[ds]?|unfit|anew|bury|buried|sift(s|ed)?|worker_shim|held_rows"
    r"|gone_index|take_back|faults_of|LakeTable|ahead_taken|alike|whoever|somebody)\b"
    r"|\b(that|what|whatever) there (is|are) not\b|\bmade anew\b|\bso (many|much)\b"
    r"|\b(is|are|was|were|be|been|being) told\b",
    re.IGNORECASE,
)


def _findings() -> list[str]:
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", ROOT / "Dockerfile"]
    below = [path for name in _FOLDERS for kind in _TEXTS for path in (ROOT / name).rglob(kind)]
    return [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for path in (*top, *below)
        if path != Path(__file__) and not _OTHERS.search(str(path))
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (found := _PRIVATE.search(line))
    ]


def test_private_words_are_in_no_name_and_no_prose() -> None:
    assert _findings() == []


def test_two_public_classes_have_two_names() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "ingestd").rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
            found[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_two_modules_of_a_layer_have_two_names() -> None:
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted((ROOT / "ingestd").glob("*/**/*.py")):
        inner = path.relative_to(ROOT / "ingestd")
        if path.stem not in ("__init__", "base"):
            paths[inner.parts[0], path.stem].append(str(inner))
    assert {name: modules for name, modules in paths.items() if len(modules) > 1} == {}

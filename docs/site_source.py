"""The pages of the site, in the order of its navigation: `python -m docs.site_source FOLDER`.

The pages keep their paths in the repository, so that their relative links are valid, with the
README as the front page. Linked files that are not pages (a commented configuration, plots) are
copied too. Only the navigation and a list of the decisions are added.
"""

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAVIGATION: Mapping[str, Sequence[str]] = {
    "Concepts": (
        "docs/tutorial.md",
        "docs/concepts.md",
        "docs/architecture.md",
        "docs/reliability.md",
    ),
    "Configuration": (
        "docs/configuration.md",
        "docs/rows.md",
        "docs/table-options.md",
        "docs/cdc-formats.md",
        "docs/migration.md",
        "docs/library.md",
        "docs/compatibility.md",
        "docs/iceberg.md",
    ),
    "Operation": (
        "docs/deployment.md",
        "docs/sources.md",
        "docs/catalogs.md",
        "docs/operations.md",
        "docs/alerts.md",
        "docs/dead-letters.md",
        "docs/maintenance.md",
        "docs/upgrading.md",
        "docs/faq.md",
        "docs/notices.md",
        "docs/compare.md",
        "docs/metrics.md",
        "docs/security.md",
        "docs/performance.md",
        "docs/scaling.md",
        "helm/ingestd/README.md",
    ),
    "Development": (
        "CONTRIBUTING.md",
        "paimon/README.md",
        "docs/modules.md",
        "docs/adr/index.md",
        "tests/support/README.md",
        "bench/README.md",
        "CHANGELOG.md",
    ),
}
"""Pages by the question they answer. The decisions are below `docs/adr/index.md`."""
FRONT = "README.md"
DECISIONS = "docs/adr/index.md"
CONFIGURATION = ROOT / "docs" / "site_conf.py"
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?\)")


def decisions() -> list[Path]:
    """The pages of decisions, by their number."""
    return sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


def pages() -> list[str]:
    """Every page that is written, by its place in the repository: those of the navigation."""
    named = [page for group in NAVIGATION.values() for page in group if page != DECISIONS]
    return [FRONT, *named, *(str(path.relative_to(ROOT)) for path in decisions())]


def tree(titles: Sequence[str], *, caption: str = "", hidden: bool) -> str:
    """A list of pages as the generator knows it; hidden ones are in the navigation only."""
    words = [f":caption: {caption}"] if caption else []
    lines = [*words, ":maxdepth: 1", *([":hidden:"] if hidden else []), "", *titles]
    return "\n".join(["", "```{toctree}", *lines, "```", ""])


def linked_files(page: str, text: str) -> Iterator[Path]:
    """Files and folders of the repository that a page links to."""
    for _, target, _ in _LINK.findall(text):
        if "://" not in target:
            path = ((ROOT / page).parent / target).resolve()
            if path.is_relative_to(ROOT) and path.exists():
                yield path


def led(text: str) -> str:
    """The text with links to the folder of decisions leading to the list of them."""
    return re.sub(r"(\]\((?:docs/)?adr/)\)", r"\1index.md)", text)


def write_source(folder: Path) -> None:
    """Write what the generator reads into a folder, which is recreated."""
    shutil.rmtree(folder, ignore_errors=True)
    written = pages()
    for page in written:
        text = (ROOT / page).read_text(encoding="utf-8")
        goal = folder / ("index.md" if page == FRONT else page)
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.write_text(led(text) + (_navigation() if page == FRONT else ""), encoding="utf-8")
        for path in linked_files(page, text):
            beside = folder / path.relative_to(ROOT)
            if path.is_file() and path.suffix != ".md":
                beside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, beside)
    names = [path.name for path in decisions()]
    title = "# Decisions\n\nEach with its reasons and what was looked at and left.\n"
    (folder / DECISIONS).write_text(title + tree(names, hidden=False), encoding="utf-8")
    shutil.copyfile(CONFIGURATION, folder / "conf.py")


def _navigation() -> str:
    groups = NAVIGATION.items()
    return "".join(tree(names, caption=caption, hidden=True) for caption, names in groups)


if __name__ == "__main__":
    write_source(Path(sys.argv[1]))

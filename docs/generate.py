"""Writes the generated parts of the documentation: `python -m docs.generate [--check]`.

Module tables come from docstrings, configuration.md from the configuration's model, metrics.md
from the collectors, the chart's README from its values, table-options.md from the declarations of
table options, compatibility.md from what the tests found, the pictures of architecture.md from the
import contracts. With --check nothing is written and stale pages are named, exit status 1.
"""

import ast
import re
import sys
from pathlib import Path

from docs.architecture_pictures import layers_picture, record_picture
from docs.cdc_formats_page import cdc_formats_page
from docs.chart_page import chart_page
from docs.compatibility_page import read_table, written_table
from docs.configuration_page import configuration_page
from docs.metrics_page import metrics_page
from docs.table_options_page import table_options_page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "ingestd"


def first_sentence(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line, up to its first full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\w)[.;](?: |$)", paragraph)[0].replace("|", "\\|")


def packages() -> list[Path]:
    """Folders of the package that hold modules, in the order of their names."""
    found = sorted(PACKAGE.rglob("__init__.py"))
    return [path.parent for path in found if modules(path.parent)]


def modules(folder: Path) -> list[Path]:
    """Modules of one folder, without `__init__`."""
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def package_table() -> str:
    """One row a package: what it is for and what it holds."""
    rows = ["| package | is for | modules |", "|---|---|---|"]
    for folder in packages():
        names = ", ".join(f"`{path.stem}`" for path in modules(folder))
        title = ".".join(folder.relative_to(ROOT).parts)
        rows.append(f"| `{title}` | {first_sentence(folder / '__init__.py')} | {names} |")
    return "\n".join(rows)


def modules_page() -> str:
    """One row a module."""
    lines = ["# Modules", "", "Written by `make docs` from the modules' own first sentences.", ""]
    for folder in packages():
        title = ".".join(folder.relative_to(ROOT).parts)
        lines += [f"## {title}", "", "| module | contents |", "|---|---|"]
        lines += [f"| `{path.stem}` | {first_sentence(path)} |" for path in modules(folder)]
        lines.append("")
    return "\n".join(lines)


def between(text: str, name: str, body: str) -> str:
    """The text with the marked part replaced."""
    pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}{body}\n{match[2]}", text)


def pages() -> dict[Path, str]:
    """Every page that has generated parts, as it should be."""
    architecture, compatibility = DOCS / "architecture.md", DOCS / "compatibility.md"
    matrix = between(compatibility.read_text("utf-8"), "written", written_table())
    return {
        compatibility: between(matrix, "read", read_table()),
        architecture: between(architecture.read_text("utf-8"), "packages", package_table()),
        DOCS / "layers.svg": layers_picture(),
        DOCS / "record-path.svg": record_picture(),
        DOCS / "modules.md": modules_page(),
        DOCS / "configuration.md": configuration_page(),
        DOCS / "metrics.md": metrics_page(),
        DOCS / "table-options.md": table_options_page(),
        DOCS / "cdc-formats.md": cdc_formats_page(),
        ROOT / "helm" / "ingestd" / "README.md": chart_page(ROOT / "helm" / "ingestd"),
    }


def main(arguments: list[str]) -> int:
    """Write the pages, or only say which are stale."""
    stale = [
        (path, text)
        for path, text in pages().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    for path, text in stale:
        if "--check" in arguments:
            sys.stdout.write(f"{path.relative_to(ROOT)} is stale: run `make docs`\n")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

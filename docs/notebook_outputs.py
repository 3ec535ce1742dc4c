"""Runs the notebook of a table's life as it is and keeps what its cells show.

`python -m docs.notebook_outputs` renews the outputs. Cells are plain Python; as in a notebook,
the value of a last expression is shown, by its `_repr_svg_` if it has one.
"""

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parent / "notebook" / "table-life.ipynb"
Cell = dict[str, Any]


def read_cells(path: Path = NOTEBOOK) -> list[Cell]:
    """The cells of a notebook, in order."""
    cells: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def run_cells(cells: list[Cell]) -> list[list[Cell]]:
    """Run the code cells in order, in one namespace; the outputs of each."""
    space: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [_outputs("".join(cell["source"]), space, n) for n, cell in enumerate(code, 1)]


def with_outputs(document: Cell) -> Cell:
    """The notebook with what its cells show now."""
    found = iter(enumerate(run_cells(document["cells"]), 1))
    cells = []
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            number, outputs = next(found)
            cells.append(cell | {"execution_count": number, "outputs": outputs})
        else:
            cells.append(cell)
    return document | {"cells": cells}


def _outputs(source: str, space: dict[str, Any], number: int) -> list[Cell]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, NOTEBOOK.name, "exec"), space)  # noqa: S102  (the project's own notebook)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), space)  # noqa: S307
    outputs: list[Cell] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append(_shown(value, number))
    return outputs


def _shown(value: Any, number: int) -> Cell:  # noqa: ANN401  (what a cell ends in)
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_svg_"):
        data["image/svg+xml"] = value._repr_svg_().splitlines(keepends=True)
    return {
        "data": data,
        "execution_count": number,
        "metadata": {},
        "output_type": "execute_result",
    }


if __name__ == "__main__":
    written = with_outputs(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    NOTEBOOK.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{NOTEBOOK}\n")

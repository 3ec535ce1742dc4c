"""The notebook runs from its first cell to its last and shows what is kept in it."""

import json

from docs.notebook_outputs import NOTEBOOK, read_cells, run_cells, with_outputs

RENEW = "renew by `python -m docs.notebook_outputs`, and read the diff"


def test_the_notebook_shows_what_its_cells_make() -> None:
    cells = read_cells()
    kept = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    assert run_cells(cells) == kept, RENEW
    assert sum("image/svg+xml" in output.get("data", {}) for one in kept for output in one) == 3


def test_the_notebook_is_of_the_fourth_format() -> None:
    document = json.loads(NOTEBOOK.read_text("utf-8"))
    assert document["nbformat"] == 4
    for cell in document["cells"]:
        fields = {"cell_type", "metadata", "source"}
        code = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == fields | code


def test_cells_share_names_and_show_their_last_value() -> None:
    def code(text: str) -> dict[str, object]:
        return {"cell_type": "code", "source": text.splitlines(keepends=True), "outputs": []}

    cells = [code("x = 2\nprint('set')"), {"cell_type": "markdown"}, code("x + 1"), code("None")]
    written = with_outputs({"cells": cells})["cells"]
    assert written[0]["outputs"] == [
        {"name": "stdout", "output_type": "stream", "text": ["set\n"]},
    ]
    assert written[2]["outputs"][0]["data"] == {"text/plain": ["3"]}
    assert written[2]["execution_count"] == 2
    assert written[3]["outputs"] == []

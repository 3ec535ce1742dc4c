"""Mutants are chosen in the files of this tree, which may have been moved since."""

from pathlib import Path

import pytest

from tests.mutation import mutants

INGESTD = mutants.ROOT / "ingestd"


@pytest.mark.parametrize("area", mutants.AREAS)
def test_each_area_has_modules(area: str) -> None:
    for name in mutants.AREAS[area]:
        modules = mutants.python_files(INGESTD / name)
        assert modules, name
        assert all(module.is_file() for module in modules), name


def test_tests_that_judge_a_layer_exist() -> None:
    named = {name for layer in mutants.LAYERS.values() for name in layer}
    assert [name for name in named if not (mutants.ROOT / name).exists()] == []


def test_modules_of_equivalent_mutants_exist() -> None:
    rows = Path(mutants.__file__).with_name("equivalent.md").read_text().splitlines()
    paths = {row.split("`")[1] for row in rows if row.startswith("| `")}
    assert paths
    assert [path for path in paths if not (INGESTD / path).exists()] == []

"""A look into an unchecked configuration: what is plain to see, and None for the rest."""

from pathlib import Path

import pytest

from ingestd.config.model import Config
from ingestd.config.peek import Peek, peek


def look(tmp_path: Path, text: str, **environ: str) -> Peek | None:
    file = tmp_path / "some.yaml"
    file.write_text(text)
    return peek(file, environ)


def test_the_section_and_the_name_are_seen(tmp_path: Path) -> None:
    found = look(tmp_path, "{spark: {spark.driver.memory: 2g}, pipeline: {name: shop}}")
    assert found == Peek("shop", {"spark.driver.memory": "2g"})


def test_the_name_that_is_not_given_is_the_default_one(tmp_path: Path) -> None:
    default = Config.model_fields["pipeline"].get_default(call_default_factory=True)
    assert look(tmp_path, "pipeline: {}") == Peek(default.name, {})


@pytest.mark.parametrize(
    "text",
    [
        *("spark: [", "spark: {a: 1}", "spark: x", "- a", "", "spark: {a: '${env:A}'}", "spark:"),
        *("pipeline: {name: 7}", "pipeline: {name: '${env:A}'}", "pipeline: x"),
    ],
)
def test_what_takes_understanding_is_left_alone(tmp_path: Path, text: str) -> None:
    assert look(tmp_path, text) is None


def test_an_override_or_no_file_is_left_alone(tmp_path: Path) -> None:
    assert look(tmp_path, "spark: {}", INGESTD__SPARK__X="1") is None
    assert look(tmp_path, "spark: {}", INGESTD__PIPELINE__NAME="a") is None
    assert look(tmp_path, "spark: {}", INGESTD__HTTP__LISTEN="a") == Peek("ingestd", {})
    assert peek(tmp_path / "none.yaml", {}) is None

"""A look into an unchecked configuration: what is plain to see, and None for the rest."""

from pathlib import Path

import pytest

from ingestd.config.preload import preload_spark


def look(tmp_path: Path, text: str, **environ: str) -> dict[str, str] | None:
    file = tmp_path / "some.yaml"
    file.write_text(text)
    return preload_spark(file, environ)


def test_the_section_is_seen(tmp_path: Path) -> None:
    assert look(tmp_path, "spark: {spark.driver.memory: 2g}") == {"spark.driver.memory": "2g"}
    assert look(tmp_path, "pipeline: {name: a}") == {}


@pytest.mark.parametrize(
    "text",
    [
        "spark: [",
        "spark: {a: 1}",
        "spark: x",
        "- a",
        "",
        "spark: {a: '${env:A}'}",
        "spark:",
        "spark: {}\nrouting: {table-suffix: 2026-02-30}",
    ],
)
def test_what_takes_understanding_is_left_alone(tmp_path: Path, text: str) -> None:
    assert look(tmp_path, text) is None


def test_an_override_or_no_file_is_left_alone(tmp_path: Path) -> None:
    assert look(tmp_path, "spark: {}", INGESTD__SPARK__X="1") is None
    assert look(tmp_path, "spark: {}", INGESTD__HTTP__LISTEN="a") == {}
    assert preload_spark(tmp_path / "none.yaml", {}) is None

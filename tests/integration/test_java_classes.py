"""Classes are compiled once for each content of their sources; errors name what is missing."""

from pathlib import Path

import pytest

from ingestd.dev.jars import JarError
from ingestd.dev.java_classes import compiled


def source(folder: Path, body: str) -> Path:
    path = folder / "Thing.java"
    path.write_text(f"class Thing {{ {body} }}")
    return path


def test_classes_are_made_once_for_each_content(tmp_path: Path) -> None:
    first = compiled([source(tmp_path, "")], [], tmp_path / "classes")
    made = (first / "Thing.class").stat().st_mtime_ns
    assert compiled([source(tmp_path, "")], [], tmp_path / "classes") == first
    assert (first / "Thing.class").stat().st_mtime_ns == made
    assert compiled([source(tmp_path, "int one;")], [], tmp_path / "classes") != first


def test_what_the_compiler_says_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(JarError, match="Wrong cannot be resolved"):
        compiled([source(tmp_path, "Wrong one;")], [], tmp_path / "classes")

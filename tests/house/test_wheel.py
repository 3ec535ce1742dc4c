"""Whoever builds a commit gets the same wheel, to the byte, whenever and wherever."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path, *, age: int, mode: int) -> Path:
    """The wheel of a copy of the project whose files are of another time, and for other people."""
    source = folder / "source"
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ingestd", source / "ingestd", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    for path in source.rglob("*"):
        if path.is_file():
            os.utime(path, (age, age))
            path.chmod(mode)
    builder = WheelBuilder(str(source))
    return Path(next(iter(builder.build(directory=str(folder / "dist"), versions=["standard"]))))


def test_two_builds_are_the_same_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = build(tmp_path / "a", age=1_000_000_000, mode=0o644)
    second = build(tmp_path / "b", age=1_600_000_000, mode=0o600)
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as wheel:
        names = wheel.namelist()
        assert {info.date_time[:3] for info in wheel.infolist()} == {(2023, 11, 14)}
    assert "ingestd/cli/main.py" in names
    assert [name for name in names if not name.startswith(("ingestd/", "ingestd-"))] == []


def test_another_date_is_another_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the date is really taken, and equal bytes above are no accident."""
    found = []
    for name, date in (("a", "1700000000"), ("b", "1600000000")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
        found.append(build(tmp_path / name, age=1_000_000_000, mode=0o644).read_bytes())
    assert found[0] != found[1]

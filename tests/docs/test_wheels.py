"""Two wheels of one tree: the same bytes from the same sources, no file in both, none left out."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from functools import cache
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.support.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = (".", "paimon")
PIP = ("-m", "pip", "--disable-pip-version-check")
LONG = pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="downloads PySpark again")
DISTRIBUTION = {"hdfs_native": "hdfs-native"}
"""Of modules that have another name than their distribution."""


def sources(folder: Path) -> Path:
    """A copy of what the wheels are built from."""
    source = folder / "source"
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("ingestd", "paimon"):
        shutil.copytree(ROOT / name, source / name, ignore=leave, symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    return source


def build(project: Path, folder: Path) -> Path:
    return Path(next(iter(WheelBuilder(str(project)).build(directory=str(folder)))))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of `ingestd` and of `ingestd-paimon`."""
    folder = tmp_path_factory.mktemp("wheels")
    source = sources(folder)
    one, other = (build(source / project, folder) for project in PROJECTS)
    return one, other


def content(wheel: Path) -> set[str]:
    """The files of the package in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert [name for name in names if not name.startswith("ingestd/")] == []
    return names


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(archive.read(name))


@cache
def project(folder: str) -> dict[str, object]:
    document = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    found: dict[str, object] = document["project"]
    return found


def requirements(folder: str, extra: str | None = None) -> list[str]:
    about = project(folder)
    found = about["dependencies"] if extra is None else about["optional-dependencies"][extra]  # type: ignore[index]
    return list(found)  # type: ignore[call-overload]


def base_name(requirement: str) -> str:
    return re.split(r"[<>=!\[; ]", requirement)[0]


@pytest.mark.parametrize("folder", PROJECTS)
def test_two_builds_are_the_same_to_the_byte(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files of another time, and for other people; another date makes another wheel."""
    found = []
    for age, mode, date in ((10**9, 0o644, 17), (16 * 10**8, 0o600, 17), (10**9, 0o644, 16)):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", f"{date}00000000")
        source = sources(tmp_path / str(len(found)))
        for path in source.rglob("*"):
            if path.is_file() and not path.is_symlink():
                os.utime(path, (age, age))
                path.chmod(mode)
        wheel = build(source / folder, tmp_path / str(len(found)))
        found.append(wheel.read_bytes())
        with zipfile.ZipFile(wheel) as archive:
            years = {info.date_time[0] for info in archive.infolist()}
        assert years == {2023 if date == 17 else 2020}
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_each_file_of_the_package_is_in_one_wheel(wheels: tuple[Path, Path]) -> None:
    daemon, library = map(content, wheels)
    tree = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "ingestd").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert daemon & library == set()
    assert daemon | library == tree
    assert {"ingestd/__init__.py", "ingestd/py.typed", "ingestd/paimon/__init__.py"} <= library
    assert "ingestd/cli/main.py" in daemon


def test_both_have_one_version_and_one_licence(wheels: tuple[Path, Path]) -> None:
    daemon, library = map(metadata, wheels)
    assert daemon["Version"] == library["Version"]
    assert daemon["Requires-Python"] == library["Requires-Python"]
    assert daemon["License-File"] == library["License-File"] == "LICENSE"
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "paimon" / "LICENSE").read_bytes()


def test_what_is_ours_is_required_in_this_very_version() -> None:
    """And what looks like ours is built from this tree, in no extra either."""
    ours = {str(project(folder)["name"]): project(folder) for folder in (*PROJECTS, "native")}
    version = project(".")["version"]
    required = [
        requirement
        for folder in PROJECTS
        for extra in (None, *project(folder).get("optional-dependencies", ()))  # type: ignore[attr-defined]
        for requirement in requirements(folder, extra)
        if base_name(requirement).startswith("ingestd")
    ]
    assert {base_name(requirement) for requirement in required} == ours.keys() - {"ingestd"}
    assert {requirement.partition("==")[2] for requirement in required} == {version}
    assert project("paimon")["version"] == version


def test_the_library_requires_what_it_imports(wheels: tuple[Path, Path]) -> None:
    imported = set()
    for name in content(wheels[1]):
        if name.endswith(".py"):
            for node in ast.walk(syntax_tree(ROOT / name)):
                if isinstance(node, ast.Import):
                    imported |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imported.add(str(node.module))
    outside = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - {"ingestd"}
    named = {
        base_name(requirement)
        for requirement in [*requirements("paimon"), *requirements("paimon", "hdfs")]
    }
    optional = {"duckdb", "pandas", "polars"}  # an error says what to install
    assert {DISTRIBUTION.get(name, name) for name in outside} - optional == named


def test_the_library_is_built_again_from_its_source_archive(
    tmp_path: Path, wheels: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = sources(tmp_path)
    archive = next(iter(SdistBuilder(str(source / "paimon")).build(directory=str(tmp_path))))
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert build(unpacked, tmp_path).read_bytes() == wheels[1].read_bytes()


@LONG
@pytest.mark.timeout(3000)
def test_an_empty_environment_with_the_wheels_runs_the_demo(
    tmp_path: Path, wheels: tuple[Path, Path]
) -> None:
    """As `pip install` does it: nothing but the wheels, and what they ask for."""
    found = tmp_path / "wheels"
    if shutil.which("cargo"):
        make = ["maturin", "build", "--quiet", "--release", "--locked", "--out", str(found)]
        make += ["--manifest-path", "native/Cargo.toml", "--target-dir", "build/native"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(make, cwd=ROOT, check=True, env={**os.environ, "PATH": path})
    home = tmp_path / "empty"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    wanted = [*map(str, wheels), *map(str, found.glob("*native*"))]
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([python, *PIP, "install", "--quiet", *wanted], check=True, env=outside)
    demo = [str(home / "bin" / "ingestd"), "demo", "--folder", "demo", "--events", "2000"]
    done = subprocess.run(
        demo, cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every row is as expected from the workload." in done.stdout

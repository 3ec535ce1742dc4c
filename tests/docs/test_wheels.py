"""Wheels are the same from the same sources, hold what they should, and work where nothing is."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = ("-m", "pip", "--disable-pip-version-check")
WHEEL = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
LONG = pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="downloads PySpark again")


def built(folder: Path, date: str = "1580601600") -> Path:
    """The wheel, of a copy of the sources in a folder of that name."""
    sources = folder / "sources"
    sources.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ingestd", sources / "ingestd", ignore=ignored)
    command = [sys.executable, *PIP, *WHEEL, "--wheel-dir", str(folder), str(sources)]
    surroundings = {**os.environ, "SOURCE_DATE_EPOCH": date}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_sources_make_the_same_wheel(tmp_path: Path) -> None:
    first, second = built(tmp_path / "a"), built(tmp_path / "elsewhere")
    assert digest(first) == digest(second)
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        about = wheel.read(metadata).decode()
    assert "ingestd/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]
    data = {f.relative_to(ROOT).as_posix() for f in (ROOT / "ingestd").rglob("*.txt")}
    assert data <= names
    assert "Requires-Python: >=3.11" in about


@LONG
@pytest.mark.timeout(3000)
def test_an_empty_environment_with_the_wheels_runs_the_demo(tmp_path: Path) -> None:
    """As `pip install` does it: nothing but the wheels, and what they ask for."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    shutil.copy(wheel := built(tmp_path / "build"), wheels)
    if shutil.which("cargo"):
        make = ["maturin", "build", "--quiet", "--release", "--locked", "--out", str(wheels)]
        make += ["--manifest-path", "native/Cargo.toml", "--target-dir", "build/native"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(make, cwd=ROOT, check=True, env={**os.environ, "PATH": path})
    home = tmp_path / "empty"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    wanted = [f"ingestd @ {(wheels / wheel.name).as_uri()}", *map(str, wheels.glob("*native*"))]
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([python, *PIP, "install", "--quiet", *wanted], check=True, env=outside)
    demo = [str(home / "bin" / "ingestd"), "demo", "--folder", "demo", "--events", "2000"]
    done = subprocess.run(
        demo, cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every row is what the workload ends in." in done.stdout

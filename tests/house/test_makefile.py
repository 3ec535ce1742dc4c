"""The Makefile explains itself, and says at once what a machine lacks."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def require(path: Path) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in {"PYTHON", "JAVA_HOME"}}
    return subprocess.run(
        ["/bin/sh", str(ROOT / ".ci" / "interpreter")],
        env={**clean, "PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_every_public_target() -> None:
    text = (ROOT / "Makefile").read_text()
    public = set(re.findall(r"^\.PHONY: (\S+)", text, re.MULTILINE)) - {"require"}
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert public == set(re.findall(r"make (\S+)", shown))


def program(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_machine_without_python_and_java_gets_both_messages(tmp_path: Path) -> None:
    answer = require(tmp_path)
    assert answer.returncode == 1
    assert "Python 3.11" in answer.stderr
    assert "Java 17 or newer, found none" in answer.stderr


def test_an_old_java_is_named_with_its_version(tmp_path: Path) -> None:
    program(tmp_path, "sed", 'exec /bin/sed "$@"')
    program(tmp_path, "python3.12", "exit 0")
    program(tmp_path, "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    answer = require(tmp_path)
    assert answer.returncode == 1
    assert "found 11" in answer.stderr
    assert "Python" not in answer.stderr


def test_an_old_python_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path, "sed", 'exec /bin/sed "$@"')
    program(tmp_path, "python3.11", "exit 1")
    program(tmp_path, "python3", "exit 0")
    program(tmp_path, "java", "echo 'openjdk version \"21\" 2023-09-19' >&2")
    answer = require(tmp_path)
    assert (answer.returncode, answer.stdout) == (0, "python3\n")

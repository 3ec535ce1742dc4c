import time
from pathlib import Path

import pytest

from ingestd.dev import child
from ingestd.dev.child import Child


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_PROGRAM", ("/bin/sh", "-c"))


def wait(process: Child) -> int:
    while process.exit_code is None:
        time.sleep(0.01)
    return process.exit_code


@pytest.mark.usefixtures("program")
def test_exit_code_and_output_of_the_program_are_kept(tmp_path: Path) -> None:
    with Child(["echo first; echo last >&2; exit 3"], tmp_path / "log") as process:
        assert wait(process) == 3
        assert process.log_tail().splitlines() == ["first", "last"]


@pytest.mark.usefixtures("program")
def test_leaving_the_block_ends_the_program_and_its_children(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    with Child([f"sleep 600 & echo $! > {noted}; wait"], tmp_path / "log") as process:
        assert process.exit_code is None
        while not (noted.exists() and noted.read_text().strip()):
            time.sleep(0.01)
    assert process.exit_code is not None
    assert process.exit_code < 0
    while is_alive(noted.read_text().strip()):
        time.sleep(0.01)


def is_alive(pid: str) -> bool:
    """Whether the process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

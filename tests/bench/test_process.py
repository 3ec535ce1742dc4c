"""Programs under measurement end with the benchmark, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from bench import compaction, read, soak

PROGRAM = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
time.sleep(600)
"""
BENCHMARK = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from bench.process import MeteredProcess, end_all_on_signals

log = Path(sys.argv[1])

def measure():
    with MeteredProcess([sys.executable, "-c", sys.argv[2]], log) as process:
        while "child" not in process.tail():
            time.sleep(0.01)
        print(process.pid, process.tail().split()[1], flush=True)
        process.finish(600)

end_all_on_signals()
with ThreadPoolExecutor(1) as thread:
    error = thread.submit(measure).exception()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_benchmark_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", BENCHMARK, str(tmp_path / "log"), PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        measured = [int(pid) for pid in benchmark.stdout.readline().split()]
        assert len(measured) == 2
        assert all(map(_is_alive, measured))
        benchmark.send_signal(number)
        assert benchmark.wait(120) == 128 + number
    end = time.monotonic() + 120
    while any(map(_is_alive, measured)):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("program", [soak, read, compaction], ids=lambda one: one.__name__)
def test_programs_that_run_alone_end_what_they_started(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> None:
        raise KeyError

    monkeypatch.setattr(program, "end_all_on_signals", told)
    with pytest.raises(KeyError):
        program.main()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

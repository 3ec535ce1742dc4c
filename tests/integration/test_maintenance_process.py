"""The process itself: what it does, and that it neither outlives the daemon nor breaks a table."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ingestd.daemon import maintenance_process
from ingestd.daemon.maintenance_process import MaintenanceClient, Opening
from ingestd.errors import RetryableError
from ingestd.ingest.maintenance.jobs import CompactionDone, Expired, NotDone
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import native_table, put

COLUMNS = [("k", "INT"), ("v", "STRING")]
NEVER = threading.Event()
Capture = pytest.CaptureFixture[str]
JOB = Job("compact", "db.t")
FULL = Job("full", "db.t")


def table(folder: Path, commits: int, *, rows: int = 10, **options: str) -> FileStoreTable:
    one = native_table(folder, COLUMNS, keys=["k"], options={"bucket": "1"} | options)
    for n in range(commits):
        put(one, [{"k": k, "v": f"{n}" * 20} for k in range(n, n + rows)])
    return one


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MaintenanceClient]:
    # A prefork server that another test started in this process would hide the exit code.
    monkeypatch.setattr(maintenance_process, "forked_python", lambda: None)
    client = MaintenanceClient(
        Opening("shop", "filesystem", str(tmp_path), {"case-sensitive": "true"})
    )
    yield client
    client.close()
    assert client.pid is None


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_logs_at_the_level_that_the_daemon_has_by_now_and_names_the_table(
    tmp_path: Path, child: MaintenanceClient, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    table(tmp_path, 1)
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    child.do(JOB, NEVER, 1)
    assert "maintenance_job" not in capfd.readouterr().out
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)
    child.do(JOB, NEVER, 1)
    [line] = [line for line in capfd.readouterr().out.splitlines() if "maintenance_job" in line]
    assert {"pipeline": "shop", "table": "db.t"}.items() <= json.loads(line).items()


def test_it_compacts_and_expires_under_a_name_of_its_own(
    tmp_path: Path, child: MaintenanceClient
) -> None:
    one = table(tmp_path, 12, rows=10, **{"snapshot.num-retained.max": "10"})
    compacted = child.do(JOB, NEVER, 1)
    assert isinstance(compacted, CompactionDone)
    assert (compacted.status, compacted.snapshot_id, compacted.files_before) == (
        "compacted", 13, 12,
    )  # fmt: skip
    assert (compacted.sorted_runs.snapshot_id, compacted.sorted_runs.level_0) == (12, 0)
    newest = latest_snapshot(one.io, one.paths)
    assert newest is not None
    assert newest.commit_user == "ingestd-shop.compact"
    process = child.pid
    expired = child.do(Job("expire", "db.t"), NEVER, 1)
    assert isinstance(expired, Expired)
    assert expired.snapshots == 3
    assert child.pid == process
    assert os.getpriority(os.PRIO_PROCESS, process or 0) > os.getpriority(os.PRIO_PROCESS, 0)
    missing = child.do(Job("compact", "db.no"), NEVER, 1)
    assert isinstance(missing, NotDone)
    assert missing.error == "TableNotFoundError"


def test_what_a_large_job_took_is_given_back_and_small_ones_keep_nothing(
    tmp_path: Path, child: MaintenanceClient
) -> None:
    one = table(tmp_path, 0)
    child.do(Job("compact", "db.no"), NEVER, 1)  # it is there, and has imported everything
    before = _memory(child)
    for rows, width in [(4_000, 2_000), (900, 10), (600, 10)]:
        for n in range(3):
            put(one, [{"k": k, "v": f"{n}" * width} for k in range(rows)])
        assert isinstance(child.do(FULL, NEVER, 60), CompactionDone)
    large = _memory(child)["VmHWM"] - before["VmRSS"]
    assert large > 20 << 20
    eventually(lambda: _memory(child)["RssAnon"] - before["RssAnon"] < large / 4)


def _memory(child: MaintenanceClient) -> dict[str, int]:
    """Bytes that the process has now, and has had at most."""
    lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
    return {line.partition(":")[0]: int(line.split()[1]) << 10 for line in lines if " kB" in line}


def test_only_a_process_that_has_not_given_way_does_what_is_urgent(
    child: MaintenanceClient,
) -> None:
    urgent, gentle = Job("compact", "db.no", urgent=True), Job("compact", "db.no")

    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, child.pid or 0) - os.getpriority(os.PRIO_PROCESS, 0)

    child.do(urgent, NEVER, 1)
    first = child.pid
    assert niceness() == 0
    child.do(urgent, NEVER, 1)
    child.do(gentle, NEVER, 1)
    assert child.pid == first
    gentle_by = niceness()
    assert gentle_by > 0
    child.do(gentle, NEVER, 1)
    assert (child.pid, niceness()) == (first, gentle_by)
    child.do(urgent, NEVER, 1)
    assert child.pid != first
    assert niceness() == 0
    assert not _is_running(first or 0)


def test_killed_in_the_middle_it_harms_nothing_and_comes_back(
    tmp_path: Path, child: MaintenanceClient
) -> None:
    one = table(tmp_path, 8, rows=20_000, bucket="8")
    before = read_table(one).sort_by("k")
    child.do(Job("compact", "db.no"), NEVER, 1)  # it is there, and has imported everything
    with (
        _on_first_file(child, tmp_path, signal.SIGKILL),
        pytest.raises(RetryableError, match="ended with -9"),
    ):
        child.do(JOB, NEVER, 1)
    assert _newest(one) == 8
    assert verify(one) == []
    again = child.do(JOB, NEVER, 60)
    assert isinstance(again, CompactionDone)
    assert (again.status, again.buckets) == ("compacted", 8)
    assert verify(one) == []
    assert read_table(one).sort_by("k").equals(before)


def _continue(pid: int) -> None:
    with suppress(ProcessLookupError):  # on a slow machine it was ended before
        os.kill(pid, signal.SIGCONT)


def test_given_up_it_takes_its_files_back(tmp_path: Path, child: MaintenanceClient) -> None:
    # Many files, so that the process is far from its commit when the first of them is seen.
    one = table(tmp_path, 8, rows=20_000, bucket="32")
    child.do(Job("compact", "db.no"), NEVER, 1)
    known, stopping = _data_files(tmp_path), threading.Event()
    stopping.set()
    with _on_first_file(child, tmp_path, signal.SIGSTOP):
        assert child.do(JOB, stopping, 0.5) is None
        assert child.pid is not None
        # What stops the process is for the test alone: it hears of its end before it goes on.
        goes_on = threading.Timer(0.5, _continue, (child.pid,))
        goes_on.start()
        child.close()
    assert _newest(one) == 8
    # No one knows yet of a file that is just being opened: that one may stay, as an orphan.
    assert len(_data_files(tmp_path) - known) <= 1
    assert verify(one) == []


def test_a_job_reads_none_of_the_manifests_that_one_before_it_has_read(
    tmp_path: Path, child: MaintenanceClient
) -> None:
    one = table(tmp_path, 2)
    first = child.do(JOB, NEVER, 1)
    for path in Path(one.path, "manifest").glob("manifest-*"):
        if "list" not in path.name:
            path.unlink()
    second = child.do(JOB, NEVER, 1)
    assert isinstance(first, CompactionDone)
    assert isinstance(second, CompactionDone)
    assert second.sorted_runs == first.sorted_runs


@contextmanager
def _on_first_file(child: MaintenanceClient, folder: Path, what: signal.Signals) -> Iterator[None]:
    """Signal the process as soon as it has begun the first of its files."""
    known, pid = _data_files(folder), child.pid
    assert pid is not None

    def watch() -> None:
        while _data_files(folder) == known:
            time.sleep(0.001)
        os.kill(pid, what)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    yield
    watcher.join(120)


def _data_files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("db.db/t/bucket-*/*")}


def _newest(one: FileStoreTable) -> int | None:
    newest = latest_snapshot(one.io, one.paths)
    return None if newest is None else newest.id


def test_it_ends_when_the_daemon_is_killed(tmp_path: Path) -> None:
    program = f"""
import threading
from ingestd.daemon.maintenance_process import MaintenanceClient
from ingestd.daemon.maintenance_process import Opening
from ingestd.ingest.maintenance.scheduler import Job
child = MaintenanceClient(Opening("shop", "filesystem", {str(tmp_path)!r}, {{}}))
child.do(Job("compact", "db.no"), threading.Event(), 1)
print(child.pid, flush=True)
threading.Event().wait()
"""
    daemon = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    with daemon.stdout as output:
        pid = int(next(line for line in output if line.strip().isdecimal()))
        daemon.kill()
        daemon.wait()
        eventually(lambda: not _is_running(pid))


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_where_python_processes_are_forks_it_is_one_too_and_ends_as_it_should(
    tmp_path: Path,
) -> None:
    program = f"""
import os, threading
from pathlib import Path
from types import SimpleNamespace
from ingestd.spark.startup.prefork_start import open_prefork_server
prefork_server = open_prefork_server()
import ingestd.daemon.maintenance_process
prefork_server.fork()
from ingestd.daemon.maintenance_process import MaintenanceClient
from ingestd.daemon.maintenance_process import Opening
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.spark.startup.jvm import keep
variables = prefork_server.variables
keep(SimpleNamespace(python=variables["PYSPARK_PYTHON"], variables=variables))
child = MaintenanceClient(Opening("shop", "filesystem", {str(tmp_path)!r}, {{}}))
done = child.do(Job("compact", "db.t", urgent=True), threading.Event(), 1)
nice = os.getpriority(os.PRIO_PROCESS, child.pid) - os.getpriority(os.PRIO_PROCESS, 0)
stat = Path(f"/proc/{{child.pid}}/stat").read_text()
is_ours = int(stat.rpartition(")")[2].split()[1]) == os.getpid()
print(type(done).__name__, child.pid, is_ours, nice)
child.close()
prefork_server.close()
"""
    table(tmp_path, 6)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    what, pid, is_ours, nice = done.stdout.splitlines()[-1].split()
    assert (what, is_ours, nice) == ("CompactionDone", "False", "0")
    eventually(lambda: not _is_running(int(pid)))

"""What a real daemon listens on, and the modes of what it leaves on the disk."""

import re
import stat
import tempfile
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.integration.listening import Listener, listening
from tests.support.daemon import Daemon, run_daemon
from tests.support.ledger import Ledger
from tests.support.pipelines import pipeline

pytestmark = pytest.mark.integration
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
SHORT = "temporary", "until it has started"


def documented() -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """How many sockets of a process and kind there are always, and how many at most."""
    section = DOCUMENT.read_text().partition("### Listening sockets")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (tcp|unix) \| ([^|]+) \|", section, re.MULTILINE)
    lasting = Counter((name, kind) for name, kind, what in rows if not what.strip().endswith(SHORT))
    return lasting, Counter((name, kind) for name, kind, _ in rows)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary folder for the daemon, of a path that is short enough for Unix sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def running(broker: DevBroker, folder: Path, scratch: Path) -> Iterator[Daemon]:
    """A daemon with a temporary folder of its own, and with rows to write."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 2_000, accounts=200)
    ledger.produce(broker)
    config = pipeline(folder, broker.bootstrap, ledger.pattern, batch_rows=300)
    java = f"-Djava.io.tmpdir={scratch}"
    variables = {"TMPDIR": str(scratch), "JDK_JAVA_OPTIONS": java}
    with run_daemon(config, folder, environment=variables) as daemon:
        yield daemon


def test_every_socket_of_a_daemon_is_documented_scratch_is_private_and_the_warehouse_has_the_umask(
    broker: DevBroker, tmp_path: Path, scratch: Path
) -> None:
    seen: set[Listener] = set()
    modes: dict[Path, int] = {}
    with running(broker, tmp_path, scratch) as daemon:

        def batches() -> int:
            for one in listening(daemon.family()):
                check(one)
                seen.add(one)
            for path in scratch.iterdir():
                with suppress(FileNotFoundError):
                    modes[path] = path.lstat().st_mode
            return daemon.log.read_text().count('"event":"batch_finished"')

        daemon.wait_until(lambda: batches() >= 5)
        now = listening(daemon.family())
    check_documented(seen, now)
    check_modes(modes, tmp_path / "warehouse")


def check(one: Listener) -> None:
    """Only this user, or a process on this machine with a secret, can reach it."""
    if one.kind == "tcp":
        assert ip_address(one.address.rpartition(":")[0]).is_loopback, one
        return
    with suppress(FileNotFoundError):  # closed meanwhile
        socket, folder = Path(one.address), Path(one.address).parent
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (socket, folder)]
        assert not modes[0] & 0o077 or not modes[1] & 0o077, (one, modes)


def check_documented(seen: Collection[Listener], now: Collection[Listener]) -> None:
    """No process had more sockets than the page has, and those that last are there at the end.

    A program that the JVM starts has the JVM's sockets until it closes them, at once.
    """
    lasting, most = documented()
    of_java = {one.address for one in seen if one.process == "java"}
    seen = [one for one in seen if one.process != "jspawnhelper" or one.address not in of_java]
    processes = {(one.process, one.pid, one.kind) for one in seen}
    for process, pid, kind in processes:
        of_process = [
            one for one in seen if (one.process, one.pid, one.kind) == (process, pid, kind)
        ]
        assert (process, kind) in most, of_process
    for key, count in lasting.items():
        found = [one for one in now if (one.process, one.kind) == key]
        by_process = Counter(one.pid for one in found)
        assert by_process, key
        assert all(count <= number <= most[key] for number in by_process.values()), found


def check_modes(modes: Mapping[Path, int], warehouse: Path) -> None:
    """Scratch files are of this user only; others may read tables."""
    assert any(path.name.startswith("blockmgr-") for path in modes), sorted(modes)
    shown = {str(path): stat.filemode(mode) for path, mode in modes.items() if mode & 0o077}
    assert shown == {}
    written = [path for path in warehouse.rglob("*") if ".ingestd" not in path.parts]
    assert any(path.suffix == ".parquet" for path in written)
    for path in written:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path

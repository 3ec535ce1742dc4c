"""Readers in Python as judges: pypaimon, paimon-rust and pyiceberg, each in an environment of
its own.

An environment is made once in the user's cache from its lock file (``pypaimon.lock`` pins an older
pyarrow, ``paimon_rust.lock`` a compiled package); requests go through a pipe.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from ingestd.dev.jars import cache_folder
from tests.support.closing import Closing
from tests.support.made_once import alone

HERE = Path(__file__).resolve().parent


class PypaimonError(Exception):
    """The reader refused a request; the message holds its traceback."""


def environment(name: str) -> Path:
    """The interpreter of the environment of a lock file, made on first use."""
    lock = HERE / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_folder() / name / digest
    python = home / "bin" / "python"
    finished = home / "finished"
    with alone(home):
        if not finished.exists():
            shutil.rmtree(home, ignore_errors=True)
            venv.create(home, with_pip=True)
            install = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock]
            subprocess.run(list(map(str, install)), check=True)
            finished.touch()
    return python


class Pypaimon(Closing):
    """One running reader for a whole test run."""

    name = "pypaimon"

    def __init__(self) -> None:
        program = HERE / "python_readers" / f"{self.name}_server.py"
        surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [str(environment(self.name)), str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=surroundings,
        )
        self._exchange(None)

    def close(self) -> None:
        """End the process."""
        if self._process.stdin and self._process.stdout:
            self._process.stdin.close()
            self._process.stdout.close()
        self._process.wait(120)

    def read(
        self, warehouse: Path | str, database: str, table: str, *, snapshot: int | None = None
    ) -> pa.Table:
        """All rows of a table as pypaimon merges them."""
        place = {"warehouse": str(warehouse), "table": f"{database}.{table}"}
        return self._rows({**place, "snapshot": snapshot})

    def _rows(self, request: Mapping[str, object]) -> pa.Table:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "rows.arrows"
            reply = json.loads(self._exchange(json.dumps({**request, "out": str(out)}) + "\n"))
            if "error" in reply:
                raise PypaimonError(reply["error"])
            with pa.memory_map(str(out)) as source:
                return pa.ipc.open_stream(source).read_all()

    def _exchange(self, request: str | None) -> str:
        if not self._process.stdin or not self._process.stdout:
            raise PypaimonError("the reader has no pipes")
        if request is not None:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PypaimonError("the reader has ended")
        return line


class PaimonRust(Pypaimon):
    """paimon-rust, through its Python package."""

    name = "paimon_rust"


class PyIceberg(Pypaimon):
    """pyiceberg, which knows nothing of Paimon."""

    name = "pyiceberg"

    def read_folder(
        self, folder: Path | str, *, tag: str | None = None, where: str | None = None
    ) -> pa.Table:
        """All rows of the table whose Iceberg metadata is in ``folder/metadata``."""
        return self._rows({"folder": str(folder), "tag": tag, "filter": where})

    def read_in_catalog(
        self, settings: Mapping[str, str], name: str, *, tag: str | None = None
    ) -> pa.Table:
        """All rows of a table of a REST catalog."""
        return self._rows({"catalog": dict(settings), "name": name, "tag": tag})

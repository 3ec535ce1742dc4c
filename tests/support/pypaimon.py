"""pypaimon as a second judge, in an environment of its own because it pins an older pyarrow.

The environment is made once from ``pypaimon.lock`` in the user's cache; requests go through a pipe.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from ingestd.dev.jars import cache_folder

HERE = Path(__file__).resolve().parent
LOCK = HERE / "pypaimon.lock"


class PypaimonError(Exception):
    """pypaimon refused a request; the message holds its traceback."""


def environment() -> Path:
    """The interpreter of the environment, made on first use."""
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_folder() / "pypaimon" / digest
    python = home / "bin" / "python"
    finished = home / "finished"
    if not finished.exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", LOCK]
        subprocess.run(list(map(str, install)), check=True)
        finished.touch()
    return python


class Pypaimon:
    """One running reader for a whole test run."""

    def __init__(self) -> None:
        surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [str(environment()), "-P", str(HERE / "pypaimon_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=surroundings,
        )
        self._exchange(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process.stdin and self._process.stdout:
            self._process.stdin.close()
            self._process.stdout.close()
        self._process.wait(30)

    def read(
        self, warehouse: Path | str, database: str, table: str, *, snapshot: int | None = None
    ) -> pa.Table:
        """All rows of a table as pypaimon merges them."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "rows.arrows"
            request = {"warehouse": str(warehouse), "table": f"{database}.{table}", "out": str(out)}
            reply = json.loads(self._exchange(json.dumps({**request, "snapshot": snapshot}) + "\n"))
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

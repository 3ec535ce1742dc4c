"""A real S3 server on this machine, whose objects are plain files in a folder."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from ingestd.dev.jars import cache_folder
from tests.support.daemon import free_port
from tests.support.made_once import built_by_go

VERSION = "v1.8.0"
_PROGRAM = "github.com/versity/versitygw/cmd/versitygw"
_BUILD_SECONDS = 1800
_KEY, _SECRET = "ingestd", "ingestd-secret"


@dataclass(frozen=True)
class S3Server:
    """`bucket` is there and empty; its objects are files below `folder`."""

    endpoint: str
    bucket: str
    folder: Path
    pid: int
    program: Path

    @property
    def options(self) -> dict[str, str]:
        """Paimon's options for it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key": _KEY,
            "s3.secret-key": _SECRET,
            "s3.path.style.access": "true",
        }

    def create_account(self, key: str, secret: str, role: str) -> None:
        """Let requests of one more key in; those of an `admin` may do everything."""
        self._administer("create-user", "-a", key, "-s", secret, "-r", role)

    def delete_account(self, key: str) -> None:
        """Refuse the requests of a key from now on."""
        self._administer("delete-user", "-a", key)

    def create_bucket(self, name: str, owner: str) -> None:
        """Make a bucket that only its owner and administrators use."""
        (self.folder.parent / name).mkdir()
        self._administer("change-bucket-owner", "-b", name, "-o", owner)

    def _administer(self, *command: str) -> None:
        root = ("--access", _KEY, "--secret", _SECRET, "--endpoint-url", self.endpoint)
        subprocess.run(
            [str(self.program), "admin", *root, *command], check=True, capture_output=True
        )


def can_be_had() -> bool:
    """Whether the server is in the cache or can be built here."""
    return _program().exists() or shutil.which("go") is not None


@contextmanager
def running_s3(program: Path, folder: Path, *more: str) -> Iterator[S3Server]:
    """The server as long as the block runs; `more` are further options of its command line."""
    data = folder / "objects"
    (data / "lake").mkdir(parents=True)
    accounts = folder / "accounts"
    accounts.mkdir()
    port = free_port()
    options = ["--port", f"127.0.0.1:{port}", "--iam-dir", str(accounts), "--iam-cache-disable"]
    options += more
    command = [str(program), *options, "posix", str(data)]
    environment = {**os.environ, "ROOT_ACCESS_KEY": _KEY, "ROOT_SECRET_KEY": _SECRET}
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _wait(endpoint, process)
        yield S3Server(endpoint, "lake", data / "lake", process.pid, program)
    finally:
        process.kill()
        process.wait(120)


def _program() -> Path:
    return cache_folder() / "s3" / VERSION / "versitygw"


def built() -> Path:
    """The server's program, from the cache or built into it; skips the test when it cannot be."""
    try:
        return built_by_go(_program(), f"{_PROGRAM}@{VERSION}", _BUILD_SECONDS)
    except subprocess.SubprocessError as error:
        pytest.skip(f"the S3 server cannot be built here: {error}")


def _wait(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            urlopen(endpoint, timeout=30).close()
        except HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no S3 server at {endpoint}")

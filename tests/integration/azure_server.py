"""Azurite: Microsoft's own emulator of Azure's blob store, a process on this machine.

It comes from npm, once into the user's cache.
"""

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ingestd.dev.jars import cache_folder
from tests.support.daemon import free_port
from tests.support.made_once import alone

VERSION = "3.35.0"
_INSTALL_SECONDS = 600
_START_SECONDS = 120
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that everybody's Azurite has."""
_API = "2023-11-03"
CONTAINER = "lake"


@dataclass(frozen=True)
class AzureServer:
    """A running one, whose container is there and empty; paths of its files begin with `root`."""

    endpoint: str

    @property
    def root(self) -> str:
        """A path of the container, as Hadoop writes it."""
        return f"abfss://{CONTAINER}@{_ACCOUNT}.dfs.core.windows.net"

    @property
    def options(self) -> dict[str, str]:
        """Paimon's options for it."""
        return {"fs.azure.account.key": _KEY}

    @property
    def environment(self) -> dict[str, str]:
        """What leads clients here instead of to Azure."""
        return {"AZURE_STORAGE_ENDPOINT": self.endpoint}


def can_be_had() -> bool:
    """Whether the server is in the cache, or npm is there, and something that runs it."""
    found = _program().exists() or shutil.which("npm") is not None
    return found and shutil.which("node") is not None


def installed() -> Path:
    """Its program, from the cache or put there; SubprocessError when it cannot be had."""
    program = _program()
    home = cache_folder() / "azurite" / VERSION
    with alone(home):
        if not program.exists():
            unfinished = home.with_name(f"install-{os.getpid()}")
            unfinished.mkdir(parents=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-save"]
            subprocess.run(
                [*command, "--prefix", str(unfinished), f"azurite@{VERSION}"],
                check=True,
                capture_output=True,
                timeout=_INSTALL_SECONDS,
            )
            unfinished.replace(home)
    return program


@contextmanager
def running_azure(program: Path, folder: Path) -> Iterator[AzureServer]:
    """The server as long as the block runs."""
    port = free_port()
    flags = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with (folder / "azurite.log").open("wb") as log:
        process = subprocess.Popen(
            ["node", str(program), *flags, *address], stdout=log, stderr=log, cwd=folder
        )
    try:
        server = AzureServer(f"http://127.0.0.1:{port}/{_ACCOUNT}")
        _make_container(server, process)
        yield server
    finally:
        process.kill()
        process.wait(120)


def _program() -> Path:
    home = cache_folder() / "azurite" / VERSION
    return home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def _make_container(server: AzureServer, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urlopen(_creation(server), timeout=30).close()
            return
        except HTTPError:
            raise
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no Azurite at {server.endpoint}")


def _creation(server: AzureServer) -> Request:
    """The signed request that makes the container."""
    date = formatdate(usegmt=True)
    headers = f"x-ms-date:{date}\nx-ms-version:{_API}\n"
    place = f"/{_ACCOUNT}/{_ACCOUNT}/{CONTAINER}\nrestype:container"
    text = "PUT" + 12 * "\n" + headers + place
    digest = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
    signed = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
    return Request(
        f"{server.endpoint}/{CONTAINER}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": _API,
            "Authorization": signed,
            "Content-Length": "0",
        },
    )

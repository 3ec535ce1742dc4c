"""Exchange files of executors: each executor serves its own files to the tasks of the others.

On a cluster a task of stage 1 writes the blobs of a slot to a file of its executor, and only a
reference to the file passes through Spark's shuffle. A task of stage 2 on the same machine maps the
file; any other one fetches it from the process that each executor's Python daemon starts for this
purpose. If an executor is lost, Spark has lost the references as well, and runs stage 1 again.

The name of a file is a random secret: it is known to those only who can read Spark's shuffle, so
that the server needs no keys of its own. The channel is not encrypted. Where Spark encrypts its
channels, or keeps the shuffle of lost executors, blobs pass through the shuffle instead
(`ingestd.spark.startup.settings`).
"""

import errno
import itertools
import os
import re
import shutil
import socket
import socketserver
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

import pyarrow as pa

from ingestd.spark.exchange.temporary_files import (
    exchange_error,
    local_directory,
    mapped,
    temporary_file,
)

_ADDRESS = "INGESTD_EXCHANGE_ADDRESS"
"""The variable by which an executor's Python daemon passes HOST:PORT of its server to workers."""
_FOLDER = "ingestd-exchange"
_NAME = re.compile(r"\d+/[0-9a-f]{32}")
_HOST_OPTION = "--hostname"
_CODEC: Literal["lz4_raw"] = "lz4_raw"
_PIECE_BYTES = 1 << 20
_LENGTHS = struct.Struct(">II")
"""The sizes of a piece, uncompressed and compressed, before its bytes; two zeros end a file."""
_SILENCE_SECONDS = 20.0
_PARENT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ExecutorFolder:
    """The folder of one batch, by its number, in the local directory of every executor.

    Batches with numbers below `oldest` have ended.
    """

    number: int
    oldest: int

    def open(self) -> str | None:
        """Create the folder in this executor, remove those of old batches, and return its path.

        Returns None if this executor does not serve files. Raises StorageError if the folder cannot
        be created.
        """
        if not _is_served():
            return None
        parent = _parent()
        path = parent / str(self.number)
        try:
            for folder in (parent, path):  # names of files are for the tasks of this executor only
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise exchange_error(str(path), error) from error
        for other in parent.iterdir():
            if int(other.name) < self.oldest:
                shutil.rmtree(other, ignore_errors=True)
        return str(path)


_numbers = itertools.count()
_live: set[int] = set()


@contextmanager
def executor_folder() -> Iterator[ExecutorFolder]:
    """Yield the folder of a new batch of this driver, which ends with the block."""
    number = next(_numbers)
    _live.add(number)
    try:
        yield ExecutorFolder(number, min(_live))
    finally:
        _live.discard(number)


def own_address() -> str:
    """Return HOST:PORT of the server of this executor's files; empty if there is none."""
    return os.environ.get(_ADDRESS, "")


def fetch_file(address: str, path: str) -> pa.Buffer:
    """Fetch an exchange file from the executor that serves it at `address`; return its bytes.

    The bytes are those of an unlinked temporary file, which is mapped. Raises OSError if the server
    does not respond or has no such file, and if the temporary file cannot be written.
    """
    host, _, port = address.rpartition(":")
    with temporary_file() as file:
        with (
            socket.create_connection((host, int(port)), _SILENCE_SECONDS) as connection,
            connection.makefile("rb") as stream,
        ):
            connection.sendall(f"{'/'.join(Path(path).parts[-2:])}\n".encode())
            while True:
                size, compressed = _LENGTHS.unpack(_read(stream, _LENGTHS.size))
                if not size:
                    break
                file.write(pa.decompress(_read(stream, compressed), size, _CODEC))
        return mapped(file)


def listening_socket(port: int) -> socket.socket | None:
    """Return the socket at which this executor serves its files; port 0 is any free port.

    The socket is bound to the address at which Spark reaches the executor, and processes that this
    process starts find this address in their environment. Returns None if the address is unknown.
    If the port is not free, waits for the server of an ended daemon to end; raises OSError if it
    still is not free then.
    """
    host = _executor_host()
    if host is None:
        return None
    deadline = time.monotonic() + 2 * _PARENT_SECONDS
    while True:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = socket.create_server(address[:2], family=family, backlog=128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            os.environ[_ADDRESS] = f"{host}:{listener.getsockname()[1]}"
            return listener


def serve_files(listener: socket.socket, parent: int) -> NoReturn:
    """Serve the exchange files of this executor until its parent, the process `parent`, ends."""
    _Server(listener, parent).serve_forever(_PARENT_SECONDS)
    raise AssertionError


class _Request(socketserver.StreamRequestHandler):
    timeout = _SILENCE_SECONDS

    def handle(self) -> None:
        """Send the file that the client names, compressed in pieces; nothing if there is none."""
        name = self.rfile.readline(64).decode("ascii", "replace").strip()
        with suppress(OSError):  # the client sees that the end is missing
            if _NAME.fullmatch(name):
                with (_parent() / name).open("rb") as file:
                    while piece := file.read(_PIECE_BYTES):
                        self._send(piece)
                    self.wfile.write(_LENGTHS.pack(0, 0))

    def _send(self, piece: bytes) -> None:
        packed = pa.compress(piece, _CODEC, asbytes=True)
        self.wfile.write(_LENGTHS.pack(len(piece), len(packed)) + packed)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, parent: int) -> None:
        socketserver.BaseServer.__init__(self, listener.getsockname(), _Request)
        self.socket, self._parent = listener, parent

    def service_actions(self) -> None:
        """End this process after the daemon that started it."""
        if os.getppid() != self._parent:
            os._exit(0)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that disconnected or sent nothing."""


def _executor_host() -> str | None:
    """Return the host name by which Spark knows this executor, whose JVM is the parent process.

    It is an argument of the JVM. Returns None where that cannot be read.
    """
    with suppress(OSError, ValueError, IndexError):
        arguments = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\0")
        return arguments[arguments.index(_HOST_OPTION) + 1].strip("[]")
    return None


def _is_served() -> bool:
    """Return whether the server of this executor's files responds.

    A process that hangs accepts connections, too, so a request without a name is sent.
    """
    host, _, port = own_address().rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port or 0)), 10.0) as connection:
        connection.sendall(b"\n")
        return connection.recv(1) == b""
    return False


def _parent() -> Path:
    return Path(local_directory(), _FOLDER)


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise ConnectionError("the executor ended the connection before the end of the file")
    return content

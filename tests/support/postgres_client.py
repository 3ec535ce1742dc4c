"""A client of PostgreSQL that sends SQL texts and reads rows as texts: its simple query protocol.

Nothing else is needed of a database driver here, so none is installed.
"""

import socket
import struct
from collections.abc import Iterator

from tests.support.closing import Closing

USER = "postgres"
_PROTOCOL = 196608
_TIMEOUT = 60.0
_NULL = -1
Rows = list[list[str | None]]


class SqlError(Exception):
    """What the server says of a statement, with its SQLSTATE first."""


class PostgresClient(Closing):
    """One connection; closed when the block is left."""

    def __init__(self, port: int, database: str = "postgres") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT)
        self._stream = self._socket.makefile("rb")
        words = ["user", USER, "database", database, "client_encoding", "UTF8", ""]
        body = struct.pack(">i", _PROTOCOL) + b"\0".join(word.encode() for word in words) + b"\0"
        self._socket.sendall(struct.pack(">i", len(body) + 4) + body)
        self._answer()

    def close(self) -> None:
        """End the connection; the server rolls back what is open."""
        self._stream.close()
        self._socket.close()

    def run(self, sql: str) -> Rows:
        """Run statements, all or none of them unless they say otherwise; the rows they gave.

        Raises SqlError; the connection is of use afterwards.
        """
        body = sql.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack(">i", len(body) + 4) + body)
        return self._answer()

    def _answer(self) -> Rows:
        rows: Rows = []
        failure = ""
        for kind, body in self._messages():
            if kind == b"D":
                rows.append(_row(body))
            elif kind == b"E":
                fields = {one[:1]: one[1:].decode() for one in body.split(b"\0") if one}
                failure = f"{fields.get(b'C')}: {fields.get(b'M')}"
            elif kind == b"Z":
                break
        if failure:
            raise SqlError(failure)
        return rows

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        while kind := self._stream.read(1):
            (length,) = struct.unpack(">i", self._stream.read(4))
            yield kind, self._stream.read(length - 4)
        raise SqlError("the server has closed the connection")


def _row(body: bytes) -> list[str | None]:
    (count,) = struct.unpack_from(">h", body)
    cells: list[str | None] = []
    place = 2
    for _ in range(count):
        (length,) = struct.unpack_from(">i", body, place)
        place += 4
        cells.append(None if length == _NULL else body[place : place + length].decode())
        place += max(length, 0)
    return cells

"""Locks of a Hive Metastore whose connections are cut."""

import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.hive_client import Address, Metastore
from ingestd.paimon.catalog.hive_lock import HiveLock
from ingestd.paimon.catalog.lock_settings import LockSettings
from ingestd.paimon.catalog.thrift import Struct, encode_call, i32, i64, structure, texts

_UGI: Struct = {0: texts("user")}
_WAITING, _ACQUIRED = ({0: structure({1: i64(7), 2: i32(state)})} for state in (2, 1))
_NAME = re.compile(rb"set_ugi|check_lock|unlock|lock")


@contextmanager
def server(*connections: Sequence[Struct]) -> Iterator[tuple[Address, list[str]]]:
    """A server with an answer for each call of each connection, which it then cuts.

    The list gets the methods that were called.
    """
    called: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)

        def serve() -> None:
            for answers in connections:
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    return  # the test has failed
                with connection:
                    for answer in answers:
                        name = _NAME.search(connection.recv(1 << 16))
                        called.append("" if name is None else name[0].decode())
                        connection.sendall(b"\x80\x01\x00\x02" + encode_call("m", answer)[4:])

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(*listener.getsockname()), called
        thread.join()


def lock_at(address: Address) -> HiveLock:
    settings = LockSettings(acquire_timeout_ms=1000, check_max_sleep_ms=1)
    return HiveLock(Metastore([address], "u"), Identifier("db", "t"), settings, lambda _: None)


def test_a_lock_is_released_if_the_connection_is_cut_while_it_is_awaited() -> None:
    connections = ([_UGI, _WAITING], [_UGI, {}])
    with (
        server(*connections) as (address, called),
        pytest.raises(StorageError, match="check_lock"),
        lock_at(address).held("main"),
    ):
        pass
    assert called == ["set_ugi", "lock", "set_ugi", "unlock"]


def test_a_release_is_repeated_if_its_connection_is_cut() -> None:
    connections = ([_UGI, _ACQUIRED], [_UGI], [_UGI, {}])
    with server(*connections) as (address, called), lock_at(address).held("main"):
        called.append("held")
    assert called == ["set_ugi", "lock", "held", "set_ugi", "set_ugi", "unlock"]

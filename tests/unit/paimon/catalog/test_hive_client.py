import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ingestd.errors import StorageError
from ingestd.paimon.catalog.hive_client import (
    Address,
    Metastore,
    MetastoreError,
    NoSuchObjectError,
)
from ingestd.paimon.catalog.thrift import Struct, encode_call, structure, text, texts

NOWHERE = Address("127.0.0.1", 1)
NOT_FOUND = structure({1: text("no table t")})


def reply(result: Struct) -> bytes:
    return b"\x80\x01\x00\x02" + encode_call("m", result)[4:]


@contextmanager
def server(*replies: bytes) -> Iterator[Address]:
    """A server that answers the calls of one connection, and then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                for data in replies:
                    connection.recv(1 << 16)
                    connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(*listener.getsockname())
        thread.join()


def test_the_next_server_is_asked_if_one_does_not_respond() -> None:
    with server(reply({0: texts("user")}), reply({0: texts("db")})) as address:
        names = Metastore([NOWHERE, address], "user").call("get_all_databases")
    assert names.contents == ("db",)


def test_a_metastore_that_does_not_respond_is_named() -> None:
    with pytest.raises(StorageError, match=r"cannot be reached: 127\.0\.0\.1:1: .*refused"):
        Metastore([NOWHERE], "user").call("get_all_databases")


def test_an_interrupted_call_is_an_error_of_the_store() -> None:
    whole = reply({0: texts("db")})
    with (
        server(reply({0: texts("user")}), whole[:-2]) as address,
        pytest.raises(StorageError, match="get_all_databases: the server closed the connection"),
    ):
        Metastore([address], "user").call("get_all_databases")


def test_exceptions_of_the_metastore_are_errors_by_their_kind() -> None:
    for field, kind in ((1, MetastoreError), (2, NoSuchObjectError)):
        with server(reply({0: texts("user")}), reply({field: NOT_FOUND})) as address:
            with pytest.raises(MetastoreError, match="get_table_req: no table t") as caught:
                Metastore([address], "user").call("get_table_req", structure({}))
            assert type(caught.value) is kind
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

"""Calls to a Hive Metastore over Thrift.

The methods and structures are those that servers of Hive 2.3 to 4 have in common. Each session is
a connection; a server is not asked twice, because a call may have taken effect without a reply.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from ingestd.errors import StorageError
from ingestd.paimon.catalog.thrift import (
    Items,
    Struct,
    ThriftError,
    Value,
    encode_call,
    read_reply,
    structure,
    text,
    text_map,
    texts,
)

_CONNECT_SECONDS = 10
_REPLY_SECONDS = 120
_RESULT = 0
_REASON = 1
_CASCADE = structure({1: text_map({"CASCADE": "true", "DO_NOT_UPDATE_STATS": "true"})})
"""The environment of a change: columns of partitions change as well, and no files are listed."""


class _TableRequest:
    DATABASE = 1
    NAME_OR_NAMES = 2


_TABLE_OR_TABLES = 1
"""The field of the reply to a `_TableRequest`."""


class MetastoreError(StorageError):
    """The metastore reports an error of its own, or refuses a call."""


class NoSuchObjectError(MetastoreError):
    """The database, the table or the partition does not exist."""


class AlreadyExistsError(MetastoreError):
    """The database, the table or the partition exists already."""


class InvalidObjectError(MetastoreError):
    """The metastore refuses an object, such as a table with an invalid name."""


class InvalidOperationError(MetastoreError):
    """The metastore refuses an operation, such as an incompatible change of a column."""


METHODS: Mapping[str, Sequence[type[MetastoreError]]] = {
    "set_ugi": (MetastoreError,),
    "get_all_databases": (MetastoreError,),
    "get_database": (NoSuchObjectError, MetastoreError),
    "create_database": (AlreadyExistsError, InvalidObjectError, MetastoreError),
    "drop_database": (NoSuchObjectError, InvalidOperationError, MetastoreError),
    "get_all_tables": (MetastoreError,),
    "get_table_req": (MetastoreError, NoSuchObjectError),
    "get_table_objects_by_name_req": (MetastoreError, InvalidOperationError, NoSuchObjectError),
    "create_table": (AlreadyExistsError, InvalidObjectError, MetastoreError, NoSuchObjectError),
    "alter_table_with_environment_context": (InvalidOperationError, MetastoreError),
    "drop_table_with_environment_context": (NoSuchObjectError, MetastoreError),
    "add_partitions_req": (InvalidObjectError, AlreadyExistsError, MetastoreError),
    "drop_partition": (NoSuchObjectError, MetastoreError),
    "lock": (MetastoreError, MetastoreError),
    "check_lock": (MetastoreError, MetastoreError, MetastoreError),
    "unlock": (MetastoreError, MetastoreError),
}
"""The errors of each method, in the order of the fields of its exceptions from 1."""


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class MetastoreSession:
    """An open connection to one server of a metastore."""

    address: Address
    connection: socket.socket
    stream: BinaryIO

    def call(self, method: str, *arguments: Value) -> Any:  # noqa: ANN401  (by method)
        """Call a method with its arguments in order, and return the content of its result.

        Returns None for a method without a result. Raises MetastoreError if the method raises a
        declared exception, StorageError if the server does not respond.
        """
        fields = dict(enumerate(arguments, start=1))
        try:
            self.connection.sendall(encode_call(method, fields))
            reply = read_reply(self.stream)
        except (OSError, ThriftError) as error:
            raise StorageError(f"metastore {self.address}: {method}: {error}") from error
        for number, error_type in enumerate(METHODS[method], start=1):
            if number in reply:
                reason = _reason(reply[number])
                raise error_type(f"metastore {self.address}: {method}: {reason}")
        return reply[_RESULT].content if _RESULT in reply else None

    def table(self, database: str, name: str) -> Struct:
        """Return the metastore's structure `Table` of a table.

        Raises NoSuchObjectError if the table does not exist.
        """
        fields: Struct = self._request_tables("get_table_req", database, text(name))
        return fields

    def tables(self, database: str, names: Sequence[str]) -> Sequence[Struct]:
        """Return the metastore's structures `Table` of the tables `names` that exist.

        Raises the errors of `call`.
        """
        items: Items = self._request_tables(
            "get_table_objects_by_name_req", database, texts(*names)
        )
        return items.contents

    def _request_tables(self, method: str, database: str, names: Value) -> Any:  # noqa: ANN401  (by method)
        request = {_TableRequest.DATABASE: text(database), _TableRequest.NAME_OR_NAMES: names}
        return self.call(method, structure(request))[_TABLE_OR_TABLES].content


@dataclass(frozen=True)
class Metastore:
    """A Hive Metastore, by the addresses of its servers; `user` owns what is created."""

    addresses: Sequence[Address]
    user: str

    def __str__(self) -> str:
        return ",".join(f"thrift://{address}" for address in self.addresses)

    @contextmanager
    def session(self) -> Iterator[MetastoreSession]:
        """Connect to the first server that accepts a connection, and close it after the block.

        Raises StorageError if no server accepts a connection.
        """
        address, connection = self._connected()
        with closing(connection), connection.makefile("rb") as stream:
            session = MetastoreSession(address, connection, stream)
            # A server without authentication creates directories under this name.
            session.call("set_ugi", text(self.user), texts())
            yield session

    def call(self, method: str, *arguments: Value) -> Any:  # noqa: ANN401  (by method)
        """Call a method in a new session, and return the content of its result (None: no result).

        `arguments` are in order. Raises MetastoreError if the method raises a declared exception,
        StorageError if no server responds.
        """
        with self.session() as session:
            return session.call(method, *arguments)

    def find_table(self, database: str, name: str) -> Struct | None:
        """Return the metastore's Thrift structure `Table`, or None if the table does not exist.

        Raises StorageError if no server responds.
        """
        try:
            with self.session() as session:
                return session.table(database, name)
        except NoSuchObjectError:
            return None

    def find_database(self, name: str) -> Struct | None:
        """Return the metastore's structure `Database`, or None if it does not exist.

        Raises StorageError if no server responds.
        """
        try:
            fields: Struct = self.call("get_database", text(name))
        except NoSuchObjectError:
            return None
        return fields

    def alter_table(self, database: str, name: str, changed: Struct) -> None:
        """Replace the Thrift structure of a table by `changed`, which has all of its fields.

        Raises InvalidOperationError if the metastore refuses the change.
        """
        method = "alter_table_with_environment_context"
        self.call(method, text(database), text(name), structure(changed), _CASCADE)

    def _connected(self) -> tuple[Address, socket.socket]:
        problems = []
        for address in self.addresses:
            try:
                connection = socket.create_connection(
                    (address.host, address.port), timeout=_CONNECT_SECONDS
                )
            except OSError as error:
                problems.append(f"{address}: {error}")
            else:
                connection.settimeout(_REPLY_SECONDS)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return address, connection
        raise StorageError(f"the metastore cannot be reached: {'; '.join(problems)}")


def _reason(exception: Value) -> str:
    fields: Struct = exception.content
    return str(fields[_REASON].content) if _REASON in fields else "no reason reported"

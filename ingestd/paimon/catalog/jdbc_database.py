"""Connections to the database of a JDBC catalog: SQLite and PostgreSQL.

Each connection is one transaction. The driver of PostgreSQL is imported at the first connection.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from ingestd.errors import ConfigError, StorageError, UnsupportedError

SUPPORTED = "jdbc:sqlite:/PATH and jdbc:postgresql://HOST:PORT/DATABASE"
_SQLITE = "jdbc:sqlite:"
_POSTGRESQL = "jdbc:postgresql:"
_CONNECT_SECONDS = "10"
_BUSY_MILLIS = "3000"
_JOURNAL_MODES = ("DELETE", "TRUNCATE", "WAL")
_LIBPQ_NAMES: Mapping[str, str] = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "options": "options",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "user": "user",
}
"""Names of libpq for the supported properties of PostgreSQL's JDBC driver."""


class Session(Protocol):
    """A connection in a transaction."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; each `?` in it stands for a parameter."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Execute a statement, and return the number of its rows."""
        ...


class Database(Protocol):
    """A database by its address."""

    @property
    def address(self) -> str:
        """The URL without secrets."""
        ...

    @property
    def has_table(self) -> str:
        """A statement that returns a row if the table `?` exists."""
        ...

    @property
    def lock_age(self) -> str:
        """An expression for the age of a lock in seconds."""
        ...

    def transaction(self) -> AbstractContextManager[Session]:
        """Connect, and commit at the end of the block, or roll back if it raises an error.

        Raises StorageError if the database cannot be reached, ConfigError if it refuses a statement
        or its driver is not installed.
        """
        ...


def database_of(url: str, properties: Mapping[str, str]) -> Database:
    """Return the database of a JDBC URL, without connecting.

    `properties` are those of the driver; they are overridden by those in the URL. Raises
    UnsupportedError for another kind of database, ConfigError for an invalid URL or property.
    """
    base, _, query = url.partition("?")
    in_url = dict(parse_qsl(query, keep_blank_values=True))
    if "password" in in_url:
        raise ConfigError(
            f"catalog option 'uri' = '{base}?...' contains a password; set it as 'jdbc.password'"
        )
    if base.startswith(_SQLITE):
        return _sqlite(base, {**properties, **in_url})
    if base.startswith(_POSTGRESQL):
        return _postgresql(base, {**properties, **in_url})
    raise UnsupportedError(f"catalog option 'uri' = '{base}' is not supported; write {SUPPORTED}")


@dataclass(frozen=True)
class SqliteDatabase:
    """A file of SQLite; a statement waits `busy_millis` milliseconds for other writers.

    `journal_mode` is set in each connection unless it is None.
    """

    path: str
    busy_millis: int
    journal_mode: str | None

    has_table = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?"
    lock_age = "strftime('%s', 'now') - strftime('%s', acquired_at)"

    @property
    def address(self) -> str:
        """See `Database`."""
        return f"{_SQLITE}{self.path}"

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """See `Database`."""
        try:
            with closing(self._connected()) as connection:
                if self.journal_mode is not None:
                    connection.execute(f"PRAGMA journal_mode={self.journal_mode}")
                connection.execute("BEGIN")
                yield _SqliteSession(connection)
                connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise StorageError(f"catalog {self.address}: {error}") from error
        except sqlite3.Error as error:
            raise ConfigError(f"catalog {self.address}: {error}") from error

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=self.busy_millis / 1000, isolation_level=None)


@dataclass(frozen=True)
class PostgresDatabase:
    """A database of PostgreSQL; `settings` are parameters of libpq."""

    address: str
    settings: Mapping[str, str] = field(repr=False)

    has_table = "SELECT 1 WHERE to_regclass(?) IS NOT NULL"
    lock_age = "EXTRACT(EPOCH FROM AGE(NOW(), acquired_at))"

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """See `Database`."""
        psycopg = self._driver()
        try:
            with psycopg.connect(
                **{"connect_timeout": _CONNECT_SECONDS, **self.settings},
                prepare_threshold=None,  # a pooler before the database may lose statements
            ) as connection:
                # Times of locks have no zone: they are those of a JVM that runs in UTC.
                connection.execute("SET TIME ZONE 'UTC'")
                yield _PostgresSession(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise StorageError(f"catalog {self.address}: {_first_line(error)}") from error
        except psycopg.Error as error:
            raise ConfigError(f"catalog {self.address}: {_first_line(error)}") from error

    def _driver(self) -> Any:  # noqa: ANN401  (a package that need not be installed)
        try:
            return import_module("psycopg")
        except ImportError as error:
            raise ConfigError(
                f"catalog {self.address}: psycopg is not installed; install it with "
                "`pip install 'ingestd-paimon[jdbc]'`"
            ) from error


@dataclass(frozen=True)
class _SqliteSession:
    connection: sqlite3.Connection

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, tuple(parameters)).fetchall()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return self.connection.execute(sql, tuple(parameters)).rowcount


@dataclass(frozen=True)
class _PostgresSession:
    connection: Any

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._run(sql, parameters).fetchall()
        return rows

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return int(self._run(sql, parameters).rowcount)

    def _run(self, sql: str, parameters: Sequence[object]) -> Any:  # noqa: ANN401  (of the driver)
        return self.connection.execute(sql.replace("?", "%s"), tuple(parameters))


def _sqlite(base: str, properties: Mapping[str, str]) -> SqliteDatabase:
    path = base.removeprefix(_SQLITE).removeprefix("file:")
    if not Path(path).is_absolute():
        raise ConfigError(
            f"catalog option 'uri' = '{base}': write {_SQLITE}/PATH with an absolute path of a file"
        )
    _refuse_unknown(base, properties, {"busy_timeout", "journal_mode"})
    busy = properties.get("busy_timeout", _BUSY_MILLIS)
    if not busy.isdecimal():
        raise ConfigError(
            f"catalog {base}: busy_timeout = '{busy}' is not a number of milliseconds"
        )
    mode = properties.get("journal_mode")
    if mode is not None and mode.upper() not in _JOURNAL_MODES:
        raise ConfigError(
            f"catalog {base}: journal_mode = '{mode}' is not supported; supported: "
            f"{', '.join(_JOURNAL_MODES)}"
        )
    return SqliteDatabase(path, int(busy), mode)


def _postgresql(base: str, properties: Mapping[str, str]) -> PostgresDatabase:
    try:
        parts = urlsplit(base.removeprefix("jdbc:"))
        port = parts.port or 5432
    except ValueError as error:
        raise ConfigError(f"catalog option 'uri' = '{base}': {error}") from error
    database = parts.path.removeprefix("/")
    if not parts.hostname or not database or parts.username is not None:
        raise ConfigError(f"catalog option 'uri': write {_POSTGRESQL}//HOST:PORT/DATABASE")
    _refuse_unknown(base, properties, _LIBPQ_NAMES.keys())
    settings = {_LIBPQ_NAMES[name]: value for name, value in properties.items()}
    target = {"host": parts.hostname, "port": str(port), "dbname": database}
    return PostgresDatabase(base, {**settings, **target})


def _refuse_unknown(base: str, properties: Mapping[str, str], known: Collection[str]) -> None:
    unknown = sorted(properties.keys() - set(known))
    if unknown:
        raise ConfigError(
            f"catalog {base}: property {', '.join(unknown)} of the driver is not supported; "
            f"supported: {', '.join(sorted(known))}"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

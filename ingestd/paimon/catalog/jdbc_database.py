"""Connections to the database of a JDBC catalog: SQLite, PostgreSQL, MariaDB and MySQL.

Each connection is one transaction. Drivers of servers are imported at the first connection.
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

SUPPORTED = (
    "jdbc:sqlite:/PATH, jdbc:postgresql://HOST:PORT/DATABASE, or for MariaDB and MySQL "
    "jdbc:mysql://HOST:PORT/DATABASE"
)
_SQLITE = "jdbc:sqlite:"
_POSTGRESQL = "jdbc:postgresql:"
_MYSQL = "jdbc:mysql:"
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
_MYSQL_PROPERTIES = ("connectTimeout", "password", "sslMode", "user")
_MYSQL_TLS: Mapping[str, Mapping[str, bool]] = {
    "DISABLED": {"ssl_disabled": True},
    "PREFERRED": {},
    "VERIFY_CA": {"ssl_verify_cert": True},
    "VERIFY_IDENTITY": {"ssl_verify_cert": True, "ssl_verify_identity": True},
}
"""Parameters of PyMySQL for the values of `sslMode` of MySQL's JDBC driver."""
_OTHER_ENCODING = 1267
"""The error number for a text that is compared with a column whose encoding lacks characters."""


class Session(Protocol):
    """A connection to the catalog's database, in one transaction."""

    @property
    def data_error(self) -> type[Exception]:
        """The error of the driver for a value that a column cannot store."""
        ...

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; each `?` in it stands for a parameter."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Execute a statement, and return the number of rows that it changed."""
        ...

    def insert_new(self, table: str, row: Mapping[str, object]) -> bool:
        """Insert a row; return False, and change nothing, if its primary key is in use."""
        ...


def insert_storable(session: Session, table: str, row: Mapping[str, object]) -> None:
    """Insert a row, unless its primary key is in use or a column cannot store its value.

    In these cases nothing is changed. Columns have a maximum length, and an encoding that may lack
    characters.
    """
    session.execute("SAVEPOINT before_row")
    try:
        session.insert_new(table, row)
    except session.data_error:
        session.execute("ROLLBACK TO SAVEPOINT before_row")


class Database(Protocol):
    """The database of a JDBC catalog, and the SQL that differs between kinds of databases."""

    @property
    def address(self) -> str:
        """The URL without secrets."""
        ...

    @property
    def has_table(self) -> str:
        """A statement that returns a row if a table exists; its parameter is the table's name."""
        ...

    @property
    def lock_age(self) -> str:
        """An SQL expression for the age of a lock in seconds."""
        ...

    @property
    def table_suffix(self) -> str:
        """The SQL after the column definitions of a statement that creates a table."""
        ...

    def transaction(self) -> AbstractContextManager[Session]:
        """Connect, and commit at the end of the block, or roll back if it raises an error.

        Raises StorageError if the database cannot be reached, ConfigError if it refuses a statement
        or its driver is not installed.
        """
        ...


def database_of(url: str, properties: Mapping[str, str]) -> Database:
    """Return the database of a JDBC URL, without connecting.

    `properties` are properties of the driver; properties in the URL override them. Raises
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
    if base.startswith(_MYSQL):
        return _mysql(base, {**properties, **in_url})
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
    table_suffix = ""

    @property
    def address(self) -> str:
        """The URL of the database file."""
        return f"{_SQLITE}{self.path}"

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Connect, and commit at the end of the block, or roll back if it raises an error.

        Raises StorageError if the file cannot be opened or stays locked, ConfigError if SQLite
        refuses a statement.
        """
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
    table_suffix = ""

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Connect, and commit at the end of the block, or roll back if it raises an error.

        Raises StorageError if the server does not respond, ConfigError if it refuses a statement.
        """
        psycopg = _driver("psycopg", self.address)
        try:
            with psycopg.connect(
                **{"connect_timeout": _CONNECT_SECONDS, **self.settings},
                prepare_threshold=None,  # a pooler before the database may lose statements
            ) as connection:
                # Times of locks have no zone: they are those of a JVM that runs in UTC.
                connection.execute("SET TIME ZONE 'UTC'")
                yield _PostgresSession(connection, psycopg.DataError)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise StorageError(f"catalog {self.address}: {_first_line(error)}") from error
        except psycopg.Error as error:
            raise ConfigError(f"catalog {self.address}: {_first_line(error)}") from error


@dataclass(frozen=True)
class MySqlDatabase:
    """A database of MariaDB or MySQL; `settings` are parameters of PyMySQL."""

    address: str
    settings: Mapping[str, Any] = field(repr=False)

    has_table = (
        "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
    )
    lock_age = "TIMESTAMPDIFF(SECOND, acquired_at, NOW())"
    # Keys have at most 3072 bytes, too few for four columns of Java's definitions in utf8mb4;
    # other collations treat different names as equal.
    table_suffix = " CHARACTER SET utf8mb3 COLLATE utf8mb3_bin"

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Connect, and commit at the end of the block, or roll back if it raises an error.

        Raises StorageError if the server does not respond, ConfigError if it refuses a statement.
        """
        pymysql = _driver("pymysql", self.address)
        try:
            with closing(pymysql.connect(**self.settings)) as connection:
                session = _MySqlSession(connection, pymysql.DataError)
                # This level has no locks of gaps between keys, by which writers would deadlock.
                session.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                yield session
                connection.commit()
        except pymysql.OperationalError as error:
            kind = ConfigError if error.args[0] == _OTHER_ENCODING else StorageError
            raise kind(f"catalog {self.address}: {error}") from error
        except pymysql.InterfaceError as error:
            raise StorageError(f"catalog {self.address}: {error}") from error
        except pymysql.Error as error:
            raise ConfigError(f"catalog {self.address}: {error}") from error


@dataclass(frozen=True)
class _SqliteSession:
    connection: sqlite3.Connection

    data_error = sqlite3.DataError

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, tuple(parameters)).fetchall()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return self.connection.execute(sql, tuple(parameters)).rowcount

    def insert_new(self, table: str, row: Mapping[str, object]) -> bool:
        return _insert_new(self, table, row, "ON CONFLICT DO NOTHING")


@dataclass(frozen=True)
class _PostgresSession:
    connection: Any
    data_error: type[Exception]

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._run(sql, parameters).fetchall()
        return rows

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        return int(self._run(sql, parameters).rowcount)

    def insert_new(self, table: str, row: Mapping[str, object]) -> bool:
        return _insert_new(self, table, row, "ON CONFLICT DO NOTHING")

    def _run(self, sql: str, parameters: Sequence[object]) -> Any:  # noqa: ANN401  (of the driver)
        return self.connection.execute(sql.replace("?", "%s"), tuple(parameters))


@dataclass(frozen=True)
class _MySqlSession:
    connection: Any
    data_error: type[Exception]

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql.replace("?", "%s"), tuple(parameters))
            return list(cursor.fetchall())

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        with self.connection.cursor() as cursor:
            return int(cursor.execute(sql.replace("?", "%s"), tuple(parameters)))

    def insert_new(self, table: str, row: Mapping[str, object]) -> bool:
        key = next(iter(row))
        return _insert_new(self, table, row, f"ON DUPLICATE KEY UPDATE {key} = {key}")


def _insert_new(session: Session, table: str, row: Mapping[str, object], on_conflict: str) -> bool:
    marks = ", ".join("?" * len(row))
    sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) {on_conflict}"
    return session.execute(sql, tuple(row.values())) > 0


def _driver(name: str, address: str) -> Any:  # noqa: ANN401  (a package that need not be installed)
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"catalog {address}: {name} is not installed; install it with "
            "`pip install 'ingestd-paimon[jdbc]'`"
        ) from error


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
    host, port, database = _server(base, _POSTGRESQL, 5432)
    _refuse_unknown(base, properties, _LIBPQ_NAMES.keys())
    settings = {_LIBPQ_NAMES[name]: value for name, value in properties.items()}
    target = {"host": host, "port": str(port), "dbname": database}
    return PostgresDatabase(base, {**settings, **target})


def _mysql(base: str, properties: Mapping[str, str]) -> MySqlDatabase:
    host, port, database = _server(base, _MYSQL, 3306)
    _refuse_unknown(base, properties, _MYSQL_PROPERTIES)
    mode = properties.get("sslMode", "PREFERRED")
    if mode not in _MYSQL_TLS:
        raise ConfigError(
            f"catalog {base}: sslMode = '{mode}' is not supported; supported: "
            f"{', '.join(_MYSQL_TLS)}"
        )
    millis = properties.get("connectTimeout", f"{_CONNECT_SECONDS}000")
    if not millis.isdecimal() or int(millis) < 1:
        raise ConfigError(
            f"catalog {base}: connectTimeout = '{millis}' is not a number of milliseconds"
        )
    settings = {
        **_MYSQL_TLS[mode],
        **{name: properties[name] for name in ("user", "password") if name in properties},
        "connect_timeout": -(-int(millis) // 1000),
        "host": host,
        "port": port,
        "database": database,
        "charset": "utf8mb4",
        # In UTC, ages of locks have no jumps; in strict mode, too long values are not truncated.
        "init_command": "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'",
    }
    return MySqlDatabase(base, settings)


def _server(base: str, prefix: str, default_port: int) -> tuple[str, int, str]:
    """Return host, port and database of a URL. Raises ConfigError if it lacks one of them."""
    try:
        parts = urlsplit(base.removeprefix("jdbc:"))
        port = parts.port or default_port
    except ValueError as error:
        raise ConfigError(f"catalog option 'uri' = '{base}': {error}") from error
    database = parts.path.removeprefix("/")
    if not parts.hostname or not database or parts.username is not None:
        raise ConfigError(f"catalog option 'uri': write {prefix}//HOST:PORT/DATABASE")
    return parts.hostname, port, database


def _refuse_unknown(base: str, properties: Mapping[str, str], known: Collection[str]) -> None:
    unknown = sorted(properties.keys() - set(known))
    if unknown:
        raise ConfigError(
            f"catalog {base}: property {', '.join(unknown)} of the driver is not supported; "
            f"supported: {', '.join(sorted(known))}"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

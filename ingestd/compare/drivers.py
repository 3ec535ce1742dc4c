"""Connections to source databases.

The driver of a database is imported at the first connection.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ingestd.compare import mysql, postgres
from ingestd.compare.dialect import Connection, Rows, SqlDialect
from ingestd.errors import ConfigError, SourceError

_POSTGRES = ("postgresql", "postgres")
_MYSQL = ("mysql", "mariadb")
_CONNECT_SECONDS = 10
_TIMED_OUT = "57014"
_UNKNOWN_NAMES = ("42703", "42P01")
"""SQLSTATE of an undefined column and an undefined table."""
_MYSQL_TIMED_OUT = (1969, 3024)
_MYSQL_UNKNOWN_NAMES = (1054, 1146)
_TLS_PARAMETERS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_identity")
_UNREADABLE = "a URL that cannot be read"
_INSTALL = "pip install 'ingestd[compare]'"


class SchemaMovedError(SourceError):
    """The columns of a table have changed since its comparison began."""


class PostgresConnection:
    """A session of PostgreSQL, in which a statement may take `statement_seconds`.

    Raises ConfigError if the driver is not installed or the URL cannot be read, SourceError if the
    connection fails.
    """

    dialect: SqlDialect = postgres

    def __init__(self, url: str, statement_seconds: float) -> None:
        self._psycopg: Any = _driver("psycopg")
        self._place = public_url(url)
        self._seconds = statement_seconds
        try:
            self._session = self._psycopg.connect(
                url,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                application_name="ingestd compare",
                prepare_threshold=None,  # a pooler before the database may lose statements
            )
            for setting in (
                *postgres.SETTINGS,
                f"SET statement_timeout = {int(statement_seconds * 1000)}",
            ):
                self._session.execute(setting)
        except self._psycopg.ProgrammingError as error:
            raise ConfigError(f"--source {self._place}: {_first_line(error)}") from error
        except self._psycopg.Error as error:
            raise SourceError(f"database {self._place}: {_first_line(error)}") from error

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Return the rows of a statement; each `%s` in it is a parameter.

        Raises SourceError if it fails; SchemaMovedError if a column or table does not exist.
        """
        try:
            rows: Rows = self._session.execute(sql, tuple(parameters)).fetchall()
        except self._psycopg.Error as error:
            hint = ""
            if error.sqlstate == _TIMED_OUT:
                hint = f" (after {self._seconds:g} s; raise --statement-timeout)"
            kind = SchemaMovedError if error.sqlstate in _UNKNOWN_NAMES else SourceError
            raise kind(f"database {self._place}: {_first_line(error)}{hint}") from error
        return rows

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


class MySqlConnection:
    """A session of MySQL or MariaDB, in which a statement may take `statement_seconds`.

    Raises ConfigError if the driver is not installed or the URL cannot be used, SourceError if the
    connection fails.
    """

    dialect: SqlDialect = mysql

    def __init__(self, url: str, statement_seconds: float) -> None:
        self._pymysql: Any = _driver("pymysql")
        self._place = public_url(url)
        self._seconds = statement_seconds
        try:
            self._session = self._pymysql.connect(
                **mysql_parameters(url),
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                charset="utf8mb4",
                collation="utf8mb4_bin",
                program_name="ingestd compare",
                read_timeout=statement_seconds + _CONNECT_SECONDS,  # a server that is gone
            )
            for setting in (*mysql.SETTINGS, self._limit()):
                self._run(setting, ())
        except self._pymysql.Error as error:
            raise SourceError(f"database {self._place}: {_mysql_message(error)}") from error
        except (OSError, ValueError) as error:
            raise ConfigError(f"--source {self._place}: {_first_line(error)}") from error

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Return the rows of a statement; each `%s` in it is a parameter.

        Raises SourceError if it fails; SchemaMovedError if a column or table does not exist.
        """
        try:
            return self._run(sql, parameters)
        except self._pymysql.Error as error:
            code = error.args[0] if error.args else None
            hint = ""
            if code in _MYSQL_TIMED_OUT:
                hint = f" (after {self._seconds:g} s; raise --statement-timeout)"
            kind = SchemaMovedError if code in _MYSQL_UNKNOWN_NAMES else SourceError
            raise kind(f"database {self._place}: {_mysql_message(error)}{hint}") from error

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _run(self, sql: str, parameters: Sequence[object]) -> Rows:
        with self._session.cursor() as cursor:
            cursor.execute(sql, tuple(parameters))
            return list(cursor.fetchall())

    def _limit(self) -> str:
        if "mariadb" in str(self._session.get_server_info()).lower():
            return f"SET max_statement_time = {self._seconds:g}"
        return f"SET max_execution_time = {int(self._seconds * 1000)}"


def connect(url: str, statement_seconds: float) -> Connection:
    """Connect to a source database; a statement may take `statement_seconds`.

    Raises ConfigError for a URL that cannot be used or a driver that is not installed, SourceError
    if the connection fails.
    """
    if dialect_of(url) is mysql:
        return MySqlConnection(url, statement_seconds)
    return PostgresConnection(url, statement_seconds)


def dialect_of(url: str) -> SqlDialect:
    """Return the SQL dialect for the URL of a database.

    Raises ConfigError if the URL is invalid, or if it is not one of PostgreSQL or MySQL.
    """
    scheme = url.partition(":")[0]
    if scheme in (*_POSTGRES, *_MYSQL) and public_url(url) != _UNREADABLE:
        return mysql if scheme in _MYSQL else postgres
    raise ConfigError(
        f"--source {public_url(url)}: write postgresql://USER@HOST:PORT/DATABASE or "
        "mysql://USER@HOST:PORT/DATABASE; other databases cannot be compared"
    )


def mysql_parameters(url: str) -> dict[str, Any]:
    """Return the arguments of the driver's `connect` for a URL of MySQL or MariaDB.

    The password is taken from the URL, or else from the environment variable MYSQL_PWD. Raises
    ConfigError for an unknown parameter, ValueError for an invalid port.
    """
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(given.keys() - set(_TLS_PARAMETERS))
    if unknown:
        raise ConfigError(
            f"--source {public_url(url)}: parameter {', '.join(unknown)} is not known; known: "
            f"{', '.join(_TLS_PARAMETERS)}"
        )
    parameters: dict[str, Any] = {
        **given,
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port or 3306,
        "database": unquote(parts.path.removeprefix("/")) or None,
        "password": unquote(parts.password or "") or os.environ.get("MYSQL_PWD", ""),
    }
    if "ssl_verify_identity" in given:
        parameters["ssl_verify_identity"] = given["ssl_verify_identity"] == "true"
    if parts.username:
        parameters["user"] = unquote(parts.username)
    return parameters


def public_url(url: str) -> str:
    """Return the scheme, host, port and path of a URL, without user, password and parameters.

    For an invalid URL, the result is a phrase that replaces it in messages.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return _UNREADABLE
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _driver(name: str) -> Any:  # noqa: ANN401  (a package that need not be installed)
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"{name} is not installed: `{_INSTALL}`") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _mysql_message(error: Exception) -> str:
    """Return the first line of an error of the driver, whose last argument is the message."""
    return str(error.args[-1]).strip().partition("\n")[0] if error.args else repr(error)

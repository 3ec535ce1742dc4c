"""Connections to source databases.

Their drivers are imported at the first connection.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from ingestd.compare import postgres
from ingestd.errors import ConfigError, SourceError

Rows = list[tuple[Any, ...]]
_SCHEMES = ("postgresql", "postgres")
_CONNECT_SECONDS = 10
_TIMED_OUT = "57014"
_UNKNOWN_NAMES = ("42703", "42P01")
"""SQLSTATE of an undefined column and an undefined table."""
_UNREADABLE = "a URL that cannot be read"
_INSTALL = "pip install 'ingestd[compare]'"


class SchemaMovedError(SourceError):
    """The columns of a table have changed since its comparison began."""


class Connection(Protocol):
    """A session in which every statement is a read-only transaction of its own."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Return the rows of a statement; each `%s` in it stands for a parameter.

        Raises SourceError if it fails; SchemaMovedError if a column or table does not exist.
        """

    def close(self) -> None:
        """Close the connection."""


class PostgresConnection:
    """A session of PostgreSQL.

    Raises ConfigError if the driver is not installed or the URL cannot be read, SourceError if the
    connection fails.
    """

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
        """See `Connection`."""
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


def connect(url: str, statement_seconds: float) -> PostgresConnection:
    """Connect to a source database.

    Raises ConfigError for a URL of another database, and the errors of `PostgresConnection`.
    """
    if url.partition(":")[0] not in _SCHEMES or public_url(url) == _UNREADABLE:
        raise ConfigError(
            f"--source {public_url(url)}: write postgresql://USER@HOST:PORT/DATABASE; other "
            "databases cannot be compared"
        )
    return PostgresConnection(url, statement_seconds)


def public_url(url: str) -> str:
    """Return the scheme, host, port and path of a URL, without user, password and parameters."""
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

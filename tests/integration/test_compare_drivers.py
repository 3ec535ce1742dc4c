"""Connections of `ingestd compare` to a MariaDB server."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from ingestd.compare.drivers import connect
from ingestd.errors import ConfigError, SourceError
from tests.support.mariadb_server import MariaDbServer
from tests.support.postgres_server import is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not is_supported(), reason="MariaDB is fetched for Linux on x86-64 only"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDbServer]:
    with MariaDbServer() as running:
        yield running


def test_a_statement_changes_nothing_and_ends_at_its_limit(server: MariaDbServer) -> None:
    with closing(connect(server.url, 1)) as connection:
        with pytest.raises(SourceError, match="READ ONLY"):
            connection.query("CREATE TABLE shop.more (id int)")
        with pytest.raises(SourceError, match="raise --statement-timeout"):
            connection.query("SELECT sleep(9)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda url: url.removesuffix("/shop"), "name the database in the URL"),
        (lambda url: f"{url}?sslmode=require", "parameter sslmode is not known"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(
    change: Callable[[str], str], message: str, server: MariaDbServer
) -> None:
    with (
        pytest.raises(ConfigError, match=message),
        closing(connect(change(server.url), 5)) as connection,
    ):
        connection.dialect.check_server(connection)

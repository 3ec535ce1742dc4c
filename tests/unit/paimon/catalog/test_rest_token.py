import pickle
from typing import Any

import pytest

from ingestd.errors import StorageError, UnsupportedError
from ingestd.paimon.catalog.base import Identifier, TableNotFoundError, load_catalog
from ingestd.paimon.catalog.rest_messages import StorageToken, schema_document
from ingestd.paimon.catalog.rest_token import RenewedToken
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from tests.support.scripted_http import Reply, ScriptedServer

HOUR = 3600.0
SCHEMA = new_schema([("id", parse_type("INT"))], ["id"], [], {"bucket": "1"}, 0)
CONFIG = Reply(200, {"overrides": {"data-token.enabled": "true"}})
TABLE = Reply(
    200, {"id": "u", "path": "s3://b/t", "schemaId": 0, "schema": schema_document(SCHEMA)}
)


def token(number: int, expires_at: float) -> StorageToken:
    return StorageToken(frozenset({("s3.access-key", str(number))}), expires_at)


class Catalog:
    """Tokens of `seconds` by a clock that the test sets; while `down` it gives none."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.at, self.given, self.down = seconds, 0.0, 0, False
        self.retries: list[int] = []
        self.renewed = RenewedToken(self.fetch, lambda: self.at)

    def fetch(self, retries: int) -> StorageToken:
        self.retries.append(retries)
        if self.down:
            raise StorageError("503")
        self.given += 1
        return token(self.given, self.at + self.seconds)

    def number_at(self, at: float) -> int:
        self.at = at
        return int(next(iter(self.renewed.current()))[1])


@pytest.mark.parametrize(
    ("seconds", "before", "after"),
    [(8.0, 3.9, 4.0), (HOUR, 1799.0, 1800.0), (12 * HOUR, 11 * HOUR - 1, 11 * HOUR)],
)
def test_the_next_token_is_requested_after_half_of_the_time_or_an_hour_before(
    seconds: float, before: float, after: float
) -> None:
    catalog = Catalog(seconds)
    assert [catalog.number_at(at) for at in (0.0, before, after)] == [1, 1, 2]


def test_a_token_of_the_past_is_requested_once_a_second() -> None:
    catalog = Catalog(-HOUR)
    assert [catalog.number_at(at) for at in (0.0, 0.9, 1.0, 1.9, 2.0)] == [1, 1, 2, 2, 3]


def test_a_valid_token_is_used_as_long_as_the_catalog_does_not_respond() -> None:
    catalog = Catalog(100.0)
    catalog.number_at(0.0)
    catalog.down = True
    assert [catalog.number_at(at) for at in (50.0, 59.0, 60.0, 99.0)] == [1] * 4
    assert catalog.retries == [5, 0, 0, 0], "a busy server is not waited for"
    with pytest.raises(StorageError):
        catalog.number_at(100.0)
    catalog.down = False
    assert catalog.number_at(101.0) == 2


def test_a_token_that_the_store_refused_is_not_used_again() -> None:
    catalog = Catalog(HOUR)
    catalog.number_at(0.0)
    catalog.renewed.discard()
    assert [catalog.number_at(at) for at in (1.0, 2.0)] == [2, 2]


def opened(server: ScriptedServer, *replies: Reply, **options: str) -> Any:
    """The FileIO of a table; a task asks for the configuration once more."""
    server.script[:] = [CONFIG, TABLE, CONFIG, *replies]
    given = {"uri": server.uri, "s3.endpoint": "http://127.0.0.1:1", **options}
    return load_catalog("rest", "lake", given).get_table(Identifier("shop", "orders")).io


def test_credentials_of_the_token_replace_those_of_the_options() -> None:
    theirs = {"fs.s3a.access.key": "theirs", "fs.s3a.secret.key": "s", "fs.oss.x": "other"}
    reply = Reply(200, {"token": theirs, "expiresAtMillis": 1 << 50})
    ours = {"s3.access-key": "ours", "s3.secret-key": "ours", "s3.session.token": "ours"}
    with ScriptedServer([]) as server:
        io = opened(server, reply, **ours)
        assert dict(io.credentials.current()) == {
            "s3.endpoint": "http://127.0.0.1:1",
            "fs.s3a.access.key": "theirs",
            "fs.s3a.secret.key": "s",
        }
        assert server.asked[3].path == "/v1/databases/shop/tables/orders/token"
        received = pickle.loads(pickle.dumps(io))
        assert received == io
        assert received.credentials.current() == io.credentials.current()
        assert len(server.asked) == 4
        assert "theirs" not in repr(io)


@pytest.mark.parametrize(
    ("reply", "error", "problem"),
    [
        (Reply(404, {"resourceType": "TABLE"}), TableNotFoundError, "no table 'shop.orders'"),
        (Reply(200, {"token": {}}), StorageError, "without 'token' and 'expiresAtMillis'"),
        (
            Reply(200, {"token": {"akId": "x"}, "expiresAtMillis": 1}),
            UnsupportedError,
            "no credentials of S3: it contains akId",
        ),
    ],
)
def test_a_token_that_cannot_be_used_is_named(
    reply: Reply, error: type[Exception], problem: str
) -> None:
    with ScriptedServer([]) as server, pytest.raises(error, match=problem):
        opened(server, reply).list_names("s3://b/t")


def test_a_local_table_needs_no_token() -> None:
    with ScriptedServer([]) as server:
        path = {**TABLE.document, "path": "file:/lake/t"}
        server.script[:] = [CONFIG, Reply(200, path)]
        catalog = load_catalog("rest", "lake", {"uri": server.uri})
        assert catalog.get_table(Identifier("shop", "orders")).io.list_names("/lake/t") == []
        assert len(server.asked) == 2

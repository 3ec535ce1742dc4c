"""Requests over a real socket: what is asked again, what must not be, and what comes of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, IngestdError, StorageError, UnsupportedError
from ingestd.paimon.catalog import rest_http
from ingestd.paimon.catalog.rest_auth import BearerToken, bearer_token
from ingestd.paimon.catalog.rest_http import RestClient, RestResponse, base_uri
from tests.support.dripping_server import HEAD, DrippingServer, whole_answer
from tests.support.scripted_http import Reply, ScriptedServer, Step

OK = Reply(200, {"ok": True})


class Waits(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def client(server: ScriptedServer, token: BearerToken | None = None) -> tuple[RestClient, Waits]:
    waits = Waits()
    return RestClient(server.uri, token or BearerToken(), retries=3, sleep=waits), waits


def test_documents_go_out_and_come_back() -> None:
    with ScriptedServer([OK, OK]) as server:
        one = RestClient(server.uri, bearer_token({"token": "tok-tok"}), {"X-Who": "me"})
        assert one.get("/v1/config", {"warehouse": "a b"}).document == {"ok": True}
        one.post("/v1/x", {"a": [1]})
        assert [(a.method, a.path, a.document) for a in server.asked] == [
            ("GET", "/v1/config?warehouse=a+b", None),
            ("POST", "/v1/x", {"a": [1]}),
        ]
        assert server.asked[0].headers["authorization"] == "Bearer tok-tok"
        assert server.asked[0].headers["x-who"] == "me"


@pytest.mark.parametrize("method", ["get", "delete", "post"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_when_it_says(method: str, status: int) -> None:
    busy: Sequence[Step] = [Reply(status, {}, {"Retry-After": "7"}), Reply(status), OK]
    with ScriptedServer(busy) as server:
        one, waits = client(server)
        arguments = ({},) if method == "post" else ()
        assert getattr(one, method)("/v1/x", *arguments).status == 200
        assert waits[0] == 7
        assert 2 <= waits[1] <= 3


def test_a_server_that_stays_busy_is_an_error_that_may_pass() -> None:
    with ScriptedServer([Reply(503, {"message": "later"})] * 4) as server:
        one, waits = client(server)
        with pytest.raises(StorageError, match="503 to GET /v1/x: later"):
            one.get("/v1/x")
        assert len(waits) == 3


@pytest.mark.parametrize("method", ["get", "delete"])
def test_a_lost_answer_is_asked_for_again(method: str) -> None:
    with ScriptedServer([None, OK]) as server:
        one, waits = client(server)
        assert getattr(one, method)("/v1/x").status == 200
        assert len(waits) == 1


def test_a_change_whose_answer_was_lost_is_not_sent_twice() -> None:
    with ScriptedServer([None, OK]) as server:
        one, _ = client(server)
        with pytest.raises(StorageError, match="not known"):
            one.post("/v1/x", {})
        assert len(server.asked) == 1


def test_a_change_that_never_left_is_sent_again() -> None:
    with ScriptedServer([]) as server:
        gone = server.uri
    waits = Waits()
    with pytest.raises(StorageError, match="no response"):
        RestClient(gone, BearerToken(), retries=2, sleep=waits).post("/v1/x", {})
    assert len(waits) == 2


def test_what_is_gone_at_the_second_try_was_removed_by_the_first() -> None:
    with ScriptedServer([None, Reply(404, {"resourceType": "TABLE"})]) as server:
        assert client(server)[0].delete("/v1/x").missing_resource is None
    with ScriptedServer([Reply(404, {"resourceType": "TABLE"})]) as server:
        assert client(server)[0].delete("/v1/x").missing_resource == "TABLE"


def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old-token")
    token = bearer_token({"token-file": str(file)})

    def refuse(_: object) -> Reply:
        file.write_text("new-token")
        return Reply(401)

    with ScriptedServer([refuse, OK, Reply(401, {"message": "no"})]) as server:
        one, waits = client(server, token)
        assert one.get("/v1/x").status == 200
        assert server.asked[1].headers["authorization"] == "Bearer new-token"
        with pytest.raises(ConfigError, match="401 to GET /v1/y: no; check the catalog's"):
            one.get("/v1/y")
        assert waits == []


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ConfigError), (403, ConfigError), (501, UnsupportedError), (405, UnsupportedError),
        (500, StorageError), (502, StorageError), (302, ConfigError),
    ],
)  # fmt: skip
def test_refusals_are_errors_of_their_kind(status: int, error: type[IngestdError]) -> None:
    location = {"Location": "http://127.0.0.1:9/elsewhere"}
    with ScriptedServer([Reply(status, {"message": "because"}, location)]) as server:
        with pytest.raises(error, match="because"):
            client(server)[0].get("/v1/x")
        assert len(server.asked) == 1


def test_an_answer_that_is_no_json_is_an_error() -> None:
    with ScriptedServer([Reply(200, b"<html>")] * 4) as server, pytest.raises(StorageError):
        client(server)[0].get("/v1/x")
    unexplained = pytest.raises(StorageError, match="gives no reason")
    with ScriptedServer([Reply(502, b"<html>")]) as server, unexplained:
        client(server)[0].get("/v1/x")


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"a": ' + b"[" * 200_000, b'{"a": "' + b"x" * 70 + b'"}'],
)  # fmt: skip
def test_answers_that_are_too_deep_or_too_large_are_errors(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_http, "_MOST_BYTES", 64 if b"x" in body else 1 << 20)
    with ScriptedServer([Reply(200, body)] * 4) as server, pytest.raises(StorageError):
        client(server)[0].get("/v1/x")
    with ScriptedServer([Reply(500, body)]) as server, pytest.raises(StorageError):
        client(server)[0].get("/v1/x")


@pytest.mark.parametrize("sent", [0, len(HEAD)], ids=["head", "body"])
def test_an_answer_that_drips_is_given_up_when_its_time_is_up(sent: int) -> None:
    answer = whole_answer(b'{"a": "%s"}' % (b"x" * 300))
    with DrippingServer(answer[:sent], answer[sent:]) as server:
        one = RestClient(server.url, BearerToken(), retries=0, timeout_seconds=0.5)
        with pytest.raises(StorageError, match="timed out"):
            one.get("/v1/x")


def test_an_answer_that_ends_early_is_one_that_was_lost() -> None:
    answer = whole_answer(b"{}" + b" " * 100)[:-50]
    with DrippingServer(answer, b"") as server:
        one = RestClient(server.url, BearerToken(), retries=0)
        with pytest.raises(StorageError, match="not known"):
            one.post("/v1/x", {})


def test_what_a_server_says_is_short_in_a_message() -> None:
    said = {"message": "no\n\x1b[31m" + "so " * 170_000}
    with ScriptedServer([Reply(500, said), Reply(404, said)]) as server:
        with pytest.raises(StorageError, match="no  ") as caught:
            client(server)[0].get("/v1/x")
        assert len(caught.value.message) < 1000
        assert len(client(server)[0].get("/v1/x").message) < 400


def test_a_time_to_wait_that_is_no_number_is_ours() -> None:
    with ScriptedServer([Reply(503, {}, {"Retry-After": "\xb2"}), OK]) as server:
        one, waits = client(server)
        assert one.get("/v1/x").status == 200
        assert 1 <= waits[0] <= 1.1


@pytest.mark.parametrize("names", [5, {"a": 1}, [1], ["a", None]])
def test_a_listing_that_is_none_is_an_error(names: object) -> None:
    refused = pytest.raises(StorageError, match="not a list of names")
    with ScriptedServer([Reply(200, {"tables": names})]) as server, refused:
        list(client(server)[0].pages("/v1/tables", "tables"))


@pytest.mark.parametrize("found", [5, ["a"], "text"])
def test_members_of_an_answer_that_are_no_object_are_an_error(found: object) -> None:
    with pytest.raises(StorageError, match="defaults is not a JSON object"):
        RestResponse(200, {"defaults": found}).members("defaults")
    assert RestResponse(200, {"defaults": None}).members("defaults") == {}


def test_a_listing_without_an_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_http, "_MOST_PAGES", 10)
    pages = [Reply(200, {"tables": [], "nextPageToken": str(n)}) for n in range(20)]
    with ScriptedServer(pages) as server, pytest.raises(StorageError, match="more than 10 pages"):
        list(client(server)[0].pages("/v1/tables", "tables"))


def test_pages_are_followed_to_the_last() -> None:
    pages = [
        Reply(200, {"tables": ["a", "b"], "nextPageToken": "b"}),
        Reply(200, {"tables": ["c"], "nextPageToken": "c"}),
        Reply(200, {"tables": None}),
    ]
    with ScriptedServer(pages) as server:
        assert list(client(server)[0].pages("/v1/tables", "tables")) == ["a", "b", "c"]
        assert [one.path for one in server.asked] == [
            "/v1/tables", "/v1/tables?pageToken=b", "/v1/tables?pageToken=c",
        ]  # fmt: skip


def test_a_server_that_names_the_same_page_for_ever_is_left() -> None:
    same = Reply(200, {"tables": ["a"], "nextPageToken": "x"})
    with ScriptedServer([same] * 5) as server:
        assert list(client(server)[0].pages("/v1/tables", "tables")) == ["a", "a"]


@pytest.mark.parametrize(
    ("text", "uri"),
    [("host:80/", "http://host:80"), (" https://host/base/ ", "https://host/base")],
)
def test_addresses_end_without_a_slash(text: str, uri: str) -> None:
    assert base_uri(text) == uri


@pytest.mark.parametrize(
    "text",
    ["ftp://host", "file:///etc/passwd", "http://", "http://u:p@h", "http://[::1", "http://h:port"],
)
def test_what_is_no_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="not an address") as caught:
        base_uri(text)
    assert text not in caught.value.message

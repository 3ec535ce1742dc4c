"""Tokens for a registry that checks them, from a token endpoint; both listen on sockets."""

import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.kafka import registry_tokens
from ingestd.kafka.registry_settings import RegistrySettings
from ingestd.kafka.registry_tokens import TokenClient, forget_tokens
from ingestd.kafka.schema_registry import SchemaRegistry, forget_schemas
from ingestd.log import redact
from ingestd.secret_references import resolve
from ingestd.spark.sealed_task import SealedTask, seal
from tests.support.certificates import HAS_OPENSSL, Authority
from tests.support.clock import Clock
from tests.support.registry_server import RegistryServer
from tests.support.scripted_http import Reply, ScriptedServer
from tests.support.token_endpoint import CLIENT, CLIENT_SECRET, TokenEndpoint

DOCUMENT: dict[str, Any] = {"ids": {str(n): {"schema": f'"{n}"'} for n in range(1, 40)}}


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    forget_schemas()
    forget_tokens()
    yield
    forget_schemas()
    forget_tokens()


def registry_at(url: str, token_url: str, **more: Any) -> SchemaRegistry:
    client = TokenClient(token_url, CLIENT, CLIENT_SECRET, **more.pop("client", {}))
    settings = {"token_client": client, "retry_seconds": 0.0, **more}
    return SchemaRegistry(RegistrySettings((url,), **settings))


@pytest.mark.skipif(not HAS_OPENSSL, reason="makes certificates with openssl")
def test_threads_share_a_token_of_an_endpoint_with_https(tmp_path: Path) -> None:
    signer = Authority(tmp_path)
    headers = {"target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": "pool-1"}
    certificate = signer.sign("localhost", host="127.0.0.1")
    with (
        TokenEndpoint(certificate=certificate) as tokens,
        RegistryServer(DOCUMENT, headers=headers, token_uses=100) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        client = {"scope": "schemas read", "ca_location": str(signer.path)}
        ours = {"logical_cluster": "lsrc-1", "identity_pool": "pool-1", "client": client}
        registry = registry_at(server.url, tokens.url, **ours)
        assert all(pool.map(registry.find, range(1, 20)))
        assert tokens.forms == [{"grant_type": ["client_credentials"], "scope": ["schemas read"]}]
        forget_tokens()
        untrusted = registry_at(server.url, tokens.url)
        with pytest.raises(SourceSilentError, match=r"token endpoint .* no response"):
            untrusted.find(30)


def test_a_token_is_renewed_before_it_expires_and_used_while_the_endpoint_is_down(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(0.0)
    monkeypatch.setattr(registry_tokens, "time", SimpleNamespace(monotonic=clock))
    with TokenEndpoint(3600.0) as tokens, RegistryServer(DOCUMENT, token_uses=100) as server:
        registry = registry_at(server.url, tokens.url)
        assert registry.find(1)
        clock.now = 2879.0
        assert registry.find(2)
        assert tokens.given == 1
        tokens.down = True
        clock.now = 2881.0
        assert not caplog.messages
        registry.find(3)
        assert "schema_registry_token_retry" in caplog.messages
        tokens.down = False
        assert registry.find(4)
        assert tokens.given == 2


def test_a_rejected_token_is_renewed_once() -> None:
    with TokenEndpoint() as tokens:
        with RegistryServer(DOCUMENT, token_uses=1) as server:
            registry = registry_at(server.url, tokens.url)
            assert all(registry.find(n) for n in (1, 2, 3))
            assert tokens.given == 3
        with RegistryServer(DOCUMENT, token_uses=0) as server:
            with pytest.raises(ConfigError, match="responds with 401"):
                registry_at(server.url, tokens.url).find(1)
            assert server.hits == {"/schemas/ids/1": 2}
        assert tokens.given == 4


def test_a_rejected_client_is_an_error_with_the_keys_and_without_the_secret() -> None:
    with TokenEndpoint() as tokens:
        client = TokenClient(tokens.url, CLIENT, "planted-wrong-secret")
        settings = RegistrySettings(("http://127.0.0.1:9",), token_client=client)
        with pytest.raises(ConfigError, match="bearer-auth-client-secret") as caught:
            SchemaRegistry(settings).find(1)
    assert "planted" not in str(caught.value)
    assert "planted" not in repr(settings)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {"access_token": ""}),
        Reply(200, {"access_token": "two\nlines"}),
        Reply(200, {"access_token": 7}),
        Reply(200, []),
        Reply(200, b"<html>"),
        Reply(200, {"access_token": "t", "expires_in": "soon"}),
        Reply(302, {}, {"Location": "http://127.0.0.1:9/"}),
        Reply(404, {}),
        Reply(401, b"<html>"),
        Reply(503, {}),
        Reply(429, {}),
    ],
)
def test_what_is_no_token_fails_the_look_up_and_not_the_record(reply: Reply) -> None:
    with ScriptedServer([reply]) as server, pytest.raises(SourceError, match="token endpoint"):
        registry_at("http://127.0.0.1:9", server.uri).find(1)


def test_tasks_contain_neither_token_nor_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REGISTRY_SECRET", CLIENT_SECRET)
    resolve("${env:REGISTRY_SECRET}", {"REGISTRY_SECRET": CLIENT_SECRET}, Path())
    caplog.set_level(logging.DEBUG)
    with TokenEndpoint() as tokens, RegistryServer(DOCUMENT, token_uses=9) as server:
        registry = registry_at(server.url, tokens.url)
        assert registry.find(1)
        task = seal(registry)  # type: ignore[type-var]  # of a task, the part with the secret
        assert isinstance(task, SealedTask)
        token = next(iter(_held_tokens()))
        payload = pickle.dumps(task)
        assert CLIENT_SECRET.encode() not in payload and token.encode() not in payload
        assert b"access_token" not in payload
        forget_schemas()
        assert task.opened().find(2)
        assert redact(f"Bearer {token}") != f"Bearer {token}"


def _held_tokens() -> list[str]:
    return [held.token for held in registry_tokens._held.values() if held.token]

"""The registry client against a registry process."""

import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.kafka import registry_reading
from ingestd.kafka.registry_http import RegistryHttp
from ingestd.kafka.registry_settings import RegistrySettings, check_registry
from ingestd.kafka.schema_registry import SchemaRegistry, forget_schemas
from tests.support.captured_avro import REGISTRY, schema_texts
from tests.support.certificates import HAS_OPENSSL, Authority
from tests.support.dripping_server import HEAD, DrippingServer, whole_answer
from tests.support.registry_server import RegistryServer
from tests.support.scripted_http import Reply, ScriptedServer, SignalRequests, Step

DOCUMENT: dict[str, Any] = {
    "ids": {
        "1": {"schema": '"string"'},
        "2": {
            "schema": 'syntax = "proto3";',
            "schemaType": "PROTOBUF",
            "references": [{"name": "a/b.proto", "subject": "a/b.proto", "version": 3}],
        },
        "3": {"schema": "{}", "schemaType": "JSON"},
        "4": {"schema": '"X"', "references": [{"name": "X", "subject": "x", "version": 1}]},
        "5": {"schema": '"Y"', "references": [{"name": "Y", "subject": "loop", "version": 1}]},
        "9": {"schema": "message B {}", "schemaType": "PROTOBUF"},
    },
    "subjects": {
        "a/b.proto": [{"version": 3, "id": 9}],
        "loop": [{"version": 1, "id": 5}],
    },
    "guids": {"00112233-4455-6677-8899-aabbccddeeff": 1},
}


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    forget_schemas()
    yield
    forget_schemas()


def registry_at(url: str, **more: Any) -> SchemaRegistry:
    return SchemaRegistry(RegistrySettings((url,), **{"retry_seconds": 5.0, **more}))


def test_schemas_are_found_with_all_that_they_refer_to_and_asked_for_once() -> None:
    with RegistryServer(REGISTRY) as server:
        registry = registry_at(server.url)
        for _ in range(3):
            for number in (15, 32):
                found = registry.find(number)
                text, references = schema_texts(number)
                assert found is not None and found.text == text
                assert [reference.text for reference in found.references] == references
        copied: SchemaRegistry = pickle.loads(pickle.dumps(registry))
        assert copied == registry and copied.find(15) == registry.find(15)
        assert set(server.hits.values()) == {1}


def test_types_guids_and_names_of_references_are_read() -> None:
    with RegistryServer(DOCUMENT) as server:
        registry = registry_at(server.url)
        found = registry.find(2)
        assert found is not None and found.kind == "PROTOBUF"
        assert [(reference.name, reference.text) for reference in found.references] == [
            ("a/b.proto", "message B {}")
        ]
        by_guid = registry.find("00112233445566778899aabbccddeeff")
        assert by_guid == registry.find(1)
        assert registry.find(3) is not None
        # A reference that is not there, and one that leads back to itself.
        assert registry.find(4) is None and registry.find(5) is None


def test_versions_before_a_schema_are_those_of_its_subjects_newest_first() -> None:
    texts = {"1": "message A {}", "2": "message B {}", "3": "message C {}", "4": "message D {}"}
    document = {
        "ids": {n: {"schema": text, "schemaType": "PROTOBUF"} for n, text in texts.items()},
        "subjects": {"t-value": [{"version": v, "id": i} for v, i in ((1, 1), (4, 2), (5, 3))]},
    }
    document["subjects"]["other"] = [{"version": 1, "id": 4}]
    with RegistryServer(document) as server:
        registry = registry_at(server.url)
        assert [one.text for one in registry.earlier(3)] == [texts["2"], texts["1"]]
        assert registry.earlier(1) == registry.earlier(4) == registry.earlier("0" * 32) == ()


def test_an_unknown_id_is_nothing_and_is_not_asked_for_again_at_once() -> None:
    with RegistryServer(DOCUMENT) as server:
        registry = registry_at(server.url)
        assert registry.find(77) is None and registry.find(77) is None
        assert server.hits == {"/schemas/ids/77": 1}


def test_failing_answers_are_asked_for_again() -> None:
    with RegistryServer(DOCUMENT, fail_first=3) as server:
        assert registry_at(server.url).find(1) is not None
        assert server.hits == {"/schemas/ids/1": 4}


def test_an_outage_is_an_error_that_names_no_record_and_passes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = RegistryServer(DOCUMENT)
    registry = registry_at(server.url, retry_seconds=0.3)
    with pytest.raises(SourceError, match="No record is rejected"):
        registry.find(1)
    assert "schema_registry_retry" in caplog.messages
    with server:
        assert registry.find(1) is not None
        server.close()
        assert registry.find(1) is not None, "what is known needs no registry"
        with pytest.raises(SourceError):
            registry.find(3)
        server.start()
        assert registry.find(3) is not None


def test_the_next_address_answers_for_one_that_is_down() -> None:
    with RegistryServer(DOCUMENT) as server:
        urls = ("http://127.0.0.1:9", server.url + "/")
        assert SchemaRegistry(RegistrySettings(urls)).find(1) is not None


@pytest.mark.parametrize(
    "way",
    [{"user_info": "me:secret pass"}, {"bearer": "a token"}, {"bearer_file": "a token\n"}],
    ids=["basic", "bearer", "file"],
)
def test_credentials_are_sent_and_wrong_ones_are_an_error(
    way: dict[str, str], tmp_path: Path
) -> None:
    wanted = "Basic bWU6c2VjcmV0IHBhc3M=" if "user_info" in way else "Bearer a token"
    if "bearer_file" in way:
        (tmp_path / "token").write_text(way["bearer_file"])
        way = {"bearer_file": str(tmp_path / "token")}
    with RegistryServer(DOCUMENT, headers={"Authorization": wanted}) as server:
        assert registry_at(server.url, **way).find(1) is not None
        with pytest.raises(ConfigError, match="credentials"):
            registry_at(server.url).find(3)


@pytest.mark.skipif(not HAS_OPENSSL, reason="makes certificates with openssl")
def test_with_mtls_both_sides_show_who_they_are(tmp_path: Path) -> None:
    signer = Authority(tmp_path)
    authority, served = str(signer.path), signer.sign("registry")
    ours = signer.sign("client").both
    with RegistryServer(DOCUMENT, certificate=str(served.both), client_ca=authority) as server:
        shown = {"ca_location": authority, "certificate_location": str(ours)}
        assert registry_at(server.url, **shown).find(1) is not None
        for wrong in ({}, {"ca_location": authority}):
            with pytest.raises(SourceError, match="no response"):
                registry_at(server.url, retry_seconds=0.0, **wrong).find(3)
    with pytest.raises(ConfigError, match="TLS"):
        registry_at(server.url, ca_location=str(tmp_path / "absent")).find(3)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(404, {"message": "proxy"}), SourceError),
        (Reply(404, b"<html>"), SourceError),
        (Reply(200, b"<html>"), SourceError),
        (Reply(200, []), SourceError),
        (Reply(200, {"schema": 7}), SourceError),
        (Reply(200, {"schema": "{}", "schemaType": "THRIFT"}), SourceError),
        (Reply(200, {"schema": "{}", "references": [{}]}), SourceError),
        (Reply(200, {"schema": "{}", "references": 5}), SourceError),
        (Reply(200, {"schema": "{}", "references": [5]}), SourceError),
        (Reply(200, b'{"references": [{"subject": "s", "version": Infinity}]}'), SourceError),
        (Reply(200, {"schema": "{}", "schemaType": []}), SourceError),
        (Reply(200, b"[" * 200_000), SourceError),
        (Reply(200, b'{"references": ' + b"[" * 200_000), SourceError),
        (Reply(200, b'{"schema": "' + b"x" * (5 << 20) + b'"}'), SourceError),
        (Reply(200, {}, {"X" * 70_000: "long"}), SourceError),
        (Reply(500, b'{"message": ' + b"[" * 200_000), SourceError),
        (Reply(404, {"error_code": [40403]}), SourceError),
        (Reply(302, {}, {"Location": "http://["}), ConfigError),
        (Reply(401, {}, {"WWW-Authenticate": "Basic"}), ConfigError),
        (Reply(302, {}, {"Location": "http://127.0.0.1:9/"}), ConfigError),
        (Reply(403, {}), ConfigError),
        (Reply(429, {}), SourceError),
        (None, SourceError),
    ],
)
def test_what_is_no_word_of_a_registry_says_nothing_of_an_id(
    reply: Reply | None, error: type[Exception]
) -> None:
    with ScriptedServer([reply]) as server, pytest.raises(error):
        registry_at(server.uri, retry_seconds=0.0).find(1)


def test_waits_grow_until_the_time_is_up() -> None:
    now, waits = [0.0], []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    settings = RegistrySettings(("http://127.0.0.1:9",), retry_seconds=20.0)
    with pytest.raises(SourceError, match="tried"):
        RegistryHttp(settings, sleep=sleep, clock=lambda: now[0]).get("/schemas/ids/1")
    assert waits == sorted(waits) and 10 < sum(waits) <= 20


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"urls": ("ftp://x",)}, "not an address"),
        ({"urls": ()}, "required"),
        ({"urls": ("http://me:secret@x",)}, "credentials"),
        ({"user_info": "me:x", "bearer": "y"}, "set only one of"),
        ({"user_info": "me"}, "user:password"),
        ({"key_location": "k"}, "certificate"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_registry(RegistrySettings(**{"urls": ("http://x",), **more}))


def test_what_a_server_says_is_short_in_a_message() -> None:
    said = "no\n\x1b[31m" + "so " * 170_000
    for status in (422, 500):
        script = [Reply(status, {"message": said})]
        with ScriptedServer(script) as server, pytest.raises(SourceError, match="no  ") as caught:
            registry_at(server.uri, retry_seconds=0.0).find(1)
        assert len(caught.value.message) < 1000
        assert caught.value.message.isprintable()


@pytest.mark.parametrize("sent", [0, len(HEAD)], ids=["head", "body"])
def test_an_answer_that_drips_is_given_up_when_its_time_is_up(sent: int) -> None:
    answer = whole_answer(b'{"schema": "%s"}' % (b"x" * 300))
    with DrippingServer(answer[:sent], answer[sent:]) as server:
        registry = registry_at(server.url, retry_seconds=0.0, timeout_seconds=0.5)
        with pytest.raises(SourceSilentError, match="timed out"):
            registry.find(1)


def _chain(asked: SignalRequests) -> Reply:
    """A schema that refers to another one that refers to another one."""
    number = int(asked.path.rpartition("/")[2])
    reference = {"name": f"n{number}", "subject": "chain", "version": number + 1}
    return Reply(200, {"schema": f'"{number}"', "references": [reference]})


def test_long_chains_of_references_are_read_and_endless_ones_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions = 999
    ends = Reply(200, {"schema": '"end"'})
    with ScriptedServer([_chain] * versions + [ends]) as server:
        found = registry_at(server.uri, timeout_seconds=300.0).find(0)
    assert found is not None and found.text == '"0"'
    assert [reference.text for reference in found.references][:2] == ['"end"', f'"{versions - 1}"']
    assert len(found.references) == versions
    monkeypatch.setattr(registry_reading, "_MOST_REFERENCES", 20)
    with ScriptedServer([_chain] * 100) as server, pytest.raises(SourceError, match="than 20"):
        registry_at(server.uri).find(0)


def test_a_schema_and_what_it_refers_to_have_one_deadline() -> None:
    def slow(asked: SignalRequests) -> Reply:
        time.sleep(0.1)
        return _chain(asked)

    with ScriptedServer([slow] * 900) as server:
        registry = registry_at(server.uri, retry_seconds=0.0, timeout_seconds=0.5)
        with pytest.raises(SourceSilentError, match=r"did not arrive within|timed out"):
            registry.find(0)
        assert len(server.asked) < 10


def test_nobody_waits_for_the_answer_to_a_look_up_of_others() -> None:
    asked, answers = threading.Event(), threading.Event()

    def held(_: SignalRequests) -> Reply:
        asked.set()
        answers.wait(60)
        return Reply(200, {"schema": '"held"'})

    script: list[Step] = [held, Reply(200, {"schema": '"other"'})]
    with ScriptedServer(script) as server, ThreadPoolExecutor() as pool:
        registry = registry_at(server.uri)
        first = pool.submit(registry.find, 1)
        assert asked.wait(60)
        other = registry.find(2)
        assert other is not None and other.text == '"other"' and not answers.is_set()
        assert not first.done()
        answers.set()
        held_one = first.result(60)
        assert held_one is not None and held_one.text == '"held"'

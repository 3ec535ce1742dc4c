"""Messages and responses captured from Apicurio's serializers and registries, versions 2 and 3."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, RecordChunk, load_data_format
from ingestd.cdc.schema_lookup import Framing
from ingestd.errors import SourceError
from ingestd.kafka.registry_settings import IdKind, RegistrySettings
from ingestd.kafka.schema_registry import SchemaRegistry, forget_schemas
from tests.support.registered import chunk_of
from tests.support.scripted_http import Reply, ScriptedServer, SignalRequests

GOLDEN = Path(__file__).parents[2] / "golden" / "apicurio"
ROWS = [
    {"id": n, "name": f"item {n}", "price": f'{{"currency":"EUR","cents":{n}00}}'} for n in (1, 2)
]
RENAMED = {2: 6, 3: 7}
"""Global ids of the second version of the Protobuf schema."""


class RecordedRegistry(ScriptedServer):
    """Answers each path as the real registry did; other paths are errors."""

    def __init__(self, api: int) -> None:
        self._responses = json.loads((GOLDEN / f"responses-v{api}.json").read_text())
        self._base = f"/apis/registry/v{api}"
        super().__init__([self._recorded] * 500)

    @property
    def url(self) -> str:
        return self.uri + self._base

    def _recorded(self, request: SignalRequests) -> Reply:
        status, body = self._responses[request.path.removeprefix(self._base)]
        return Reply(status, body.encode())


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    forget_schemas()
    yield
    forget_schemas()


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def api(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def recorded(api: int) -> Iterator[RecordedRegistry]:
    with RecordedRegistry(api) as server:
        yield server


def captured(api: int, case: str) -> RecordChunk:
    """The messages of a case, with the headers of keys and values."""
    lines = map(json.loads, (GOLDEN / f"messages-v{api}.jsonl").read_text().splitlines())
    own = [line for line in lines if line["case"] == case]
    keys, values = ([line for line in own if line["key"] is key] for key in (True, False))
    headers: list[list[tuple[str, bytes | None]] | None] = [
        [(name, bytes.fromhex(text)) for line in lines for name, text in line["headers"].items()]
        for lines in (zip(keys, values, strict=True) if keys else zip(values, strict=True))
    ]
    messages = [bytes.fromhex(line["bytes"]) for line in values]
    key_messages = [bytes.fromhex(line["bytes"]) for line in keys]
    return chunk_of(messages, key_messages or None, topic=values[0]["topic"], headers=headers)


def decoded(
    url: str, chunk: RecordChunk, data_format: str, framing: Framing, **more: Any
) -> Decoded:
    schemas = SchemaRegistry(RegistrySettings((url,), retry_seconds=0.0, **more))
    settings = FormatSettings(schemas=schemas, framing=framing, renames=True)
    return load_data_format(data_format, settings).decode(chunk, {}, {})


def rows_of(result: Decoded) -> list[dict[str, Any]]:
    assert not result.rejected
    (batch,) = result.batches
    return batch.columns.to_pylist()


@pytest.mark.parametrize("mode", ["default", "global", "global8", "headers", "headersGlobal"])
@pytest.mark.parametrize("data_format", ["avro", "protobuf", "json"])
def test_messages_are_read_however_the_serializer_wrote_their_ids(
    recorded: RecordedRegistry, api: int, data_format: str, mode: str
) -> None:
    framing = Framing(
        "auto" if mode.startswith("headers") else "prefix",
        8 if api == 2 or mode == "global8" else 4,
        is_apicurio=True,
    )
    used: IdKind | None = "globalId" if mode.startswith("global") else None
    chunk = captured(api, f"{data_format}-{mode}")
    result = decoded(recorded.url, chunk, data_format, framing, used_id=used)
    if data_format == "json":
        assert rows_of(result) == [{"id": 1, "name": "item 1"}]
        assert not recorded.asked
        return
    assert rows_of(result) == ROWS
    expected = ("id",) if data_format == "avro" else ()
    assert result.batches[0].primary_keys == expected


def test_avro_in_json_is_refused_with_the_setting(recorded: RecordedRegistry, api: int) -> None:
    framing = Framing("header", is_apicurio=True)
    result = decoded(recorded.url, captured(api, "avro-jsonEncoding"), "avro", framing)
    assert [record.reason for record in result.rejected] == ["unsupported-encoding"] * 2
    assert "avro.encoding=BINARY" in result.rejected[0].message


def test_fields_renamed_since_an_earlier_version_are_known(
    recorded: RecordedRegistry, api: int
) -> None:
    chunk = captured(api, "protobuf-headersGlobal")
    newest = RENAMED[api].to_bytes(8, "big")
    headers = [("apicurio.value.globalId", newest), ("apicurio.protobuf.type", b"Item")]
    chunk = chunk_of(chunk.values, topic=chunk.topic, headers=[list(headers)] * 2)
    result = decoded(recorded.url, chunk, "protobuf", Framing("auto", is_apicurio=True))
    assert [row["title"] for row in rows_of(result)] == ["item 1", "item 2"]
    renames, comments = result.schema_changes
    assert renames.columns == (("name", "title"),)
    assert comments.comments.columns == {"title": "shown to customers"}


def test_an_unknown_id_is_none_and_a_wrong_path_an_error(recorded: RecordedRegistry) -> None:
    settings = RegistrySettings((recorded.url,), retry_seconds=0.0)
    for schema_id in ("contentIds/999", "globalIds/999"):
        assert SchemaRegistry(settings).find(schema_id) is None


@pytest.mark.parametrize(
    "references",
    [{}, [5], [{}], [{"version": 1, "name": "a"}], [{"version": "1", "name": "a"}], b"<html>"],
)
def test_references_that_name_nothing_are_an_error_of_the_registry(references: object) -> None:
    script = [Reply(200, b'"string"'), Reply(200, references)]
    with ScriptedServer(script) as server, pytest.raises(SourceError, match="schema registry"):
        registry_of(server).find(1)


@pytest.mark.parametrize(
    "replies",
    [
        [{}],
        [{"versions": [5]}],
        [{"versions": [{"artifactId": 5}]}],
        [{"versions": [{"artifactId": "a"}]}, {"versions": {}}],
    ],
)
def test_versions_that_name_nothing_are_an_error_of_the_registry(replies: list[object]) -> None:
    script = [Reply(200, reply) for reply in replies]
    with ScriptedServer(script) as server, pytest.raises(SourceError, match="schema registry"):
        registry_of(server).earlier(1)


def registry_of(server: ScriptedServer) -> SchemaRegistry:
    url = f"{server.uri}/apis/registry/v3"
    return SchemaRegistry(RegistrySettings((url,), retry_seconds=0.0))


def test_a_wrong_path_is_not_an_unknown_id(api: int) -> None:
    responses = json.loads((GOLDEN / f"responses-v{api}.json").read_text())
    status, body = responses["/nowhere"]
    with ScriptedServer([Reply(status, body.encode())]) as server:
        settings = RegistrySettings((f"{server.uri}/apis/registry/v{api}",), retry_seconds=0.0)
        with pytest.raises(SourceError, match="is this the address"):
            SchemaRegistry(settings).find("contentIds/1")

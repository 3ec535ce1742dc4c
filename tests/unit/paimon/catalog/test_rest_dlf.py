import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import ConfigError, StorageError, UnsupportedError
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.catalog.rest_auth import AuthRequest
from ingestd.paimon.catalog.rest_dlf import dlf_signer
from tests.support.dlf_requests import GOLDEN, signed
from tests.support.scripted_http import Reply, ScriptedServer

URI = "https://cn-hangzhou-vpc.dlf.aliyuncs.com"
LIST = AuthRequest("GET", "/v1/databases")
KEY = {"dlf.access-key-id": "id-of-tests", "dlf.access-key-secret": "secret-of-tests"}


@pytest.mark.parametrize("line", GOLDEN.read_text(encoding="utf-8").splitlines())
def test_signatures_are_those_that_java_recorded(line: str) -> None:
    vector = json.loads(line)
    nonce = vector["headers"].get("x-acs-signature-nonce", "")
    assert signed(vector["request"], nonce) == vector["headers"]


@pytest.mark.parametrize(
    ("options", "uri", "start"),
    [
        ({}, URI, "DLF4-HMAC-SHA256 Credential=id-of-tests/19700101/cn-hangzhou/DlfNext/"),
        ({"dlf.region": "r"}, "https://x", "DLF4-HMAC-SHA256 Credential=id-of-tests/19700101/r/"),
        ({}, "https://dlfnext.cn-hangzhou.aliyuncs.com", "acs id-of-tests:"),
        ({"dlf.signing-algorithm": "openapi"}, URI, "acs id-of-tests:"),
    ],
)
def test_signature_and_region_are_those_of_options_or_address(
    options: dict[str, str], uri: str, start: str
) -> None:
    signer = dlf_signer({**KEY, **options}, uri)
    signer.now = lambda: 0.0
    assert signer.headers(LIST)["Authorization"].startswith(start)
    assert "secret-of-tests" not in repr(signer)
    assert not signer.renew()


def test_no_two_requests_have_the_same_nonce() -> None:
    signer = dlf_signer({**KEY, "dlf.signing-algorithm": "openapi"}, URI)
    first, second = (signer.headers(LIST)["x-acs-signature-nonce"] for _ in range(2))
    assert first != second


def test_a_key_file_is_read_again_before_it_expires_and_after_a_rejection(tmp_path: Path) -> None:
    file, at = tmp_path / "key", [0.0]

    def write(name: str, expiration: str | None) -> None:
        key = {"AccessKeyId": name, "AccessKeySecret": "s", "SecurityToken": f"of-{name}"}
        file.write_text(json.dumps({**key, "Expiration": expiration} if expiration else key))

    signer = dlf_signer({"dlf.token-path": str(file)}, URI)
    signer.now = lambda: at[0]

    def used() -> str:
        return signer.headers(LIST)["x-dlf-security-token"]

    write("a", "1970-01-01T02:00:00Z")
    assert used() == "of-a"
    write("b", None)
    at[0] = 3600.0
    assert used() == "of-a"
    at[0] = 3601.0
    assert used() == "of-b"
    write("c", None)
    assert used() == "of-b"
    assert signer.renew()
    assert used() == "of-c"
    assert not signer.renew()


def test_the_key_of_a_machine_is_that_of_its_role() -> None:
    key = Reply(200, {"AccessKeyId": "ecs", "AccessKeySecret": "s", "SecurityToken": "t"})
    with ScriptedServer([Reply(200, b"my-role\n"), key, Reply(404)]) as server:
        options = {
            "dlf.token-loader": "ecs",
            "dlf.token-ecs-metadata-url": f"{server.uri}/roles/",
        }
        signer = dlf_signer(options, URI)
        assert " Credential=ecs/" in signer.headers(LIST)["Authorization"]
        assert [one.path for one in server.asked] == ["/roles/", "/roles/my-role"]
        named = dlf_signer({**options, "dlf.token-ecs-role-name": "other"}, URI)
        with pytest.raises(StorageError, match="roles/other responds with 404"):
            named.headers(LIST)


@pytest.mark.parametrize(
    ("options", "uri", "error", "problem"),
    [
        ({}, URI, ConfigError, "needs 'dlf.access-key-id'"),
        (KEY, "https://1", ConfigError, "'dlf.region' is missing"),
        ({"dlf.token-loader": "local_file"}, URI, ConfigError, "needs 'dlf.token-path'"),
        ({"dlf.token-loader": "own"}, URI, UnsupportedError, "dlf.token-loader"),
        ({**KEY, "dlf.signing-algorithm": "v5"}, URI, UnsupportedError, "dlf.signing-algorithm"),
    ],
)
def test_what_is_missing_or_unknown_is_named(
    options: dict[str, str], uri: str, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        dlf_signer(options, uri)


@pytest.mark.parametrize("content", [None, b"[]", b"{", b'{"AccessKeyId": 1}', b"\xff"])
def test_a_file_without_a_key_is_refused_without_its_content(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match="token file"):
        dlf_signer({"dlf.token-path": str(file)}, URI).headers(LIST)


def test_every_attempt_of_a_request_is_signed(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(json.dumps({"AccessKeyId": "first", "AccessKeySecret": "s"}))

    def refuse(_: Any) -> Reply:
        file.write_text(json.dumps({"AccessKeyId": "second", "AccessKeySecret": "s"}))
        return Reply(401)

    with ScriptedServer([refuse, Reply(200), Reply(200, {"databases": []})]) as server:
        options = {"token.provider": "dlf", "dlf.token-path": str(file), "dlf.region": "r"}
        catalog = load_catalog("rest", "my lake", {"uri": server.uri, **options})
        assert catalog.list_databases() == []
        proofs = [one.headers["authorization"] for one in server.asked]
        assert ["Credential=second" in proof for proof in proofs] == [False, True, True]
        assert len(set(proofs)) == 3

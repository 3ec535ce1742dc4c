"""Which stores commits are safe in: what is asked of them on the wire, and what is refused."""

import base64
import json
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, StorageError, UnsupportedError
from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.io.object_store import open_store
from ingestd.paimon.io.store_options import REFUSED, is_storage_option
from tests.support.scripted_http import Reply, ScriptedServer
from tests.unit.paimon.io.conditional_store import ConditionalStore

_KEY = base64.b64encode(b"secret").decode()
_CREATE = ("x-goog-if-generation-match", "0")
_NONE_MATCHES = ("if-none-match", "*")


def _commits_once(io: FileIO, root: str, store: ConditionalStore) -> None:
    assert io.try_write_atomic(f"{root}/snapshot-1", b"mine")
    assert not io.try_write_atomic(f"{root}/snapshot-1", b"theirs")
    assert io.try_write_atomic(f"{root}/snapshot-1", b"mine"), "as after a lost answer"
    assert io.read_bytes(f"{root}/snapshot-1") == b"mine"
    assert io.size(f"{root}/snapshot-1") == 4
    assert list(store.objects.values()) == [b"mine"]


def test_google_creates_under_the_condition_that_no_generation_is_there(tmp_path: Path) -> None:
    with ConditionalStore(_CREATE) as store:
        key = {"gcs_base_url": store.endpoint, "disable_oauth": True}
        file = tmp_path / "key.json"
        file.write_text(
            json.dumps({**key, "client_email": "", "private_key": "", "private_key_id": ""})
        )
        options = {"fs.gs.auth.service.account.json.keyfile": str(file)}
        _commits_once(file_io_for("gs://lake/w", options), "gs://lake/w", store)
        assert all(put.get(_CREATE[0]) == _CREATE[1] for put in store.puts)


@pytest.mark.parametrize(
    "option", ["fs.azure.account.key", "fs.azure.account.key.acc.dfs.core.windows.net"]
)
def test_azure_creates_under_the_condition_that_nothing_matches(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ConditionalStore(_NONE_MATCHES) as store:
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", store.endpoint)
        root = "abfss://lake@acc.dfs.core.windows.net/w"
        _commits_once(file_io_for(root, {option: _KEY}), root, store)
        assert all(put.get(_NONE_MATCHES[0]) == _NONE_MATCHES[1] for put in store.puts)
        assert all("SharedKey acc:" in put["authorization"] for put in store.puts)
    open_store.cache_clear()


@pytest.mark.parametrize("scheme", sorted(REFUSED))
def test_a_store_that_cannot_be_made_safe_is_refused_with_the_reason(scheme: str) -> None:
    with pytest.raises(UnsupportedError, match="replace each other's commits") as caught:
        file_io_for(f"{scheme}://name/lake")
    assert f"'{scheme}' is not supported: " in caught.value.message
    assert "s3://" in caught.value.message


def test_an_unknown_scheme_has_no_store() -> None:
    with pytest.raises(UnsupportedError, match="'ftp' is not supported; use a local path"):
        file_io_for("ftp://name/lake")
    with pytest.raises(UnsupportedError, match="no store for this scheme"):
        open_store("ftp", "name", frozenset())


def test_a_key_file_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text("{}")
    io = file_io_for("gs://lake/w", {"fs.gs.auth.service.account.json.keyfile": str(file)})
    with pytest.raises(ConfigError, match=r"gs://lake: .*; check the options of the store"):
        io.read_bytes("gs://lake/w/x")


def test_a_deletion_whose_store_cannot_be_opened_is_logged_and_not_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key.json"
    file.write_text("{}")
    io = file_io_for("gs://lake/w", {"fs.gs.auth.service.account.json.keyfile": str(file)})
    io.delete_quietly("gs://lake/w/x")
    assert "file_not_deleted" in caplog.messages


def test_options_of_another_store_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"s3\.endpoint: no such option of Google"):
        file_io_for("gs://lake/w", {"s3.endpoint": "x"})
    with pytest.raises(ConfigError, match=r"fs\.azure\.magic: no such option of Azure"):
        file_io_for("abfss://c@a.dfs.core.windows.net/w", {"fs.azure.magic": "x"})


def test_secrets_of_all_stores_are_options_of_stores() -> None:
    assert is_storage_option("fs.azure.account.key.acc.blob.core.windows.net")
    assert is_storage_option("fs.gs.auth.service.account.json.keyfile")
    assert not is_storage_option("uri")


def test_what_a_store_says_is_short_in_a_message() -> None:
    said = b"<Error><Message>no\n" + b"so " * 170_000 + b"</Message></Error>"
    with ScriptedServer([Reply(400, said)] * 10) as server:
        options = {
            "s3.endpoint": server.uri, "s3.access-key": "a", "s3.secret-key": "b",
            "s3.path.style.access": "true",
        }  # fmt: skip
        io = file_io_for("s3://lake/w", options)
        with pytest.raises(StorageError, match=r"cannot read s3://lake/w/x: .*400") as caught:
            io.read_bytes("s3://lake/w/x")
    assert len(caught.value.message) < 1200

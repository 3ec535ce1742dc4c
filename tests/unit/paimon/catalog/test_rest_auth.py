import os
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.log import redact
from ingestd.paimon.catalog.rest_auth import AuthRequest, bearer_token

REQUEST = AuthRequest("GET", "/v1/config")


def test_a_token_is_sent_and_never_shown() -> None:
    token = bearer_token({"token": "s3cret-of-rest-auth"})
    assert token.headers(REQUEST) == {"Authorization": "Bearer s3cret-of-rest-auth"}
    assert "s3cret-of-rest-auth" not in repr(token)
    assert "s3cret-of-rest-auth" not in redact("a line with s3cret-of-rest-auth in it")
    assert not token.renew()


def test_without_a_token_nothing_is_sent() -> None:
    assert bearer_token({}).headers(REQUEST) == {}


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token\n")
    token = bearer_token({"token-file": str(file), "token.provider": "bear"})
    assert token.headers(REQUEST) == {"Authorization": "Bearer first-token"}
    file.write_text("second-token\n")
    os.utime(file, ns=(1, 1))
    assert token.headers(REQUEST) == {"Authorization": "Bearer second-token"}
    assert not token.renew()
    file.write_text("third-token")
    os.utime(file, ns=(1, 1))
    assert token.renew()


def test_a_file_without_a_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none cannot be read"):
        bearer_token({"token-file": str(tmp_path / "none")}).headers(REQUEST)
    (tmp_path / "empty").write_text(" ")
    with pytest.raises(ConfigError, match="empty is empty"):
        bearer_token({"token-file": str(tmp_path / "empty")}).headers(REQUEST)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="binary is not a text"):
        bearer_token({"token-file": str(tmp_path / "binary")}).headers(REQUEST)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"token.provider": "dlf"}, UnsupportedError),
        ({"token.provider": "bear"}, ConfigError),
        ({"token": "a", "token-file": "b"}, ConfigError),
    ],
)
def test_what_cannot_be_done_is_refused(options: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error, match="token"):
        bearer_token(options)

"""Tokens for Amazon MSK are those of the signer that AWS publishes."""

import datetime
from base64 import urlsafe_b64decode
from urllib.parse import parse_qs, urlsplit

import botocore.auth
import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

from ingestd.errors import SourceError
from ingestd.kafka.msk_tokens import MskTokens

NOW = datetime.datetime(2026, 11, 26, 12, 0, tzinfo=datetime.UTC)
SIGNATURE = "af8a428353e01830e7dd5d69d8476b7f76eaf44867efed3fe0e65fb9deccc2e1"
"""Of AWS's signer 1.0.2 for this time, region and keys."""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in ("AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{tmp_path}/credentials")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/of+a=role")
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: NOW, raising=True)


def test_the_token_equals_that_of_the_signer_of_aws() -> None:
    token, expiry, principal, extensions = MskTokens("eu-west-1")("")
    assert (token, expiry * 1000) == MSKAuthTokenProvider.generate_auth_token("eu-west-1")
    assert (expiry, principal, extensions) == (NOW.timestamp() + 900, "", {})
    url = urlsplit(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert url.hostname == "kafka.eu-west-1.amazonaws.com"
    assert parse_qs(url.query)["X-Amz-Signature"] == [SIGNATURE]


def test_a_process_without_credentials_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    with pytest.raises(SourceError, match="IRSA or Pod Identity"):
        MskTokens("eu-west-1")("")

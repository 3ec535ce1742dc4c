"""The section `notices`."""

from pathlib import Path

import pytest

from ingestd.config.effective import effective_settings
from ingestd.config.load import load_config
from ingestd.config.notices_section import signing_key
from ingestd.errors import ConfigError

FILE = """
warehouse: {path: w}
sources: {shop: {kafka: {bootstrap.servers: a:1}, topics: [t], format: raw}}
notices: NOTICES
"""


@pytest.mark.parametrize(
    ("notices", "words"),
    [
        ("{url: 'ftp://a'}", "https://host/path"),
        ("{url: 'https://me:planted-1@a/'}", "set 'signing-secret' instead"),
        ("{url: 'https://a/b planted-1'}", "https://host/path"),
        ('{url: "https://a/b\\tplanted-1"}', "https://host/path"),
        ("{url: 'https://a:b/planted-1'}", "Port could not be cast"),
        (f"{{signing-secret: whsec_{'QUJD' * 8}}}", "need 'url'"),
        ("{url: 'https://a/b', signing-secret: planted-1}", "openssl rand -base64 32"),
    ],
)
def test_what_cannot_be_used_is_refused_without_being_shown(
    notices: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(FILE.replace("NOTICES", notices))
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(path, {})
    assert "planted-1" not in caught.value.message


def test_secrets_are_references_that_no_command_resolves_for_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(FILE.replace("NOTICES", "{url: '${env:HOOK}', signing-secret: '${env:KEY}'}"))
    environ = {
        "HOOK": "https://hooks.example.org/planted-1",
        "KEY": "whsec_cGxhbnRlZC0yIG9mIHR3ZW50eS1mb3VyIGJ5dGVz",
    }
    loaded = load_config(path, environ)
    assert loaded.config.notices.url == environ["HOOK"]
    shown = {setting.key: setting.value for setting in effective_settings(loaded)}
    assert shown["notices.url"] == "${env:HOOK}"
    assert shown["notices.signing-secret"] == "${env:KEY}"


@pytest.mark.parametrize(
    "secret", ["plain", "whsec_", "whsec_?", "whsec_" + "QUJD" * 7, "TWZLUTlyOA=="]
)
def test_a_secret_of_another_form_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="openssl rand -base64 32") as caught:
        signing_key(secret)
    assert secret in {"whsec_"} or secret not in str(caught.value)

from collections.abc import Mapping
from pathlib import Path

import pytest

from ingestd import log
from ingestd.config.document import parse_document
from ingestd.config.secret_resolution import resolve_references


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_secrets", {})


def resolved(
    text: str, folder: Path, environ: Mapping[str, str] | None = None
) -> tuple[object, list[str]]:
    document = parse_document(text, "f.yaml")
    tree, issues = resolve_references(document, environ or {}, folder)
    return tree, [str(issue) for issue in issues]


def test_variables_and_files_are_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from-file\n")
    text = "a: ${env:ONE}\nb: [x, 'y-${env:ONE}-${file:secret}']\nc: plain"
    tree, issues = resolved(text, tmp_path, {"ONE": "from-env"})
    assert issues == []
    assert tree == {"a": "from-env", "b": ["x", "y-from-env-from-file"], "c": "plain"}


def test_a_value_that_looks_like_a_reference_is_not_resolved_again(tmp_path: Path) -> None:
    tree, _ = resolved("a: ${env:ONE}", tmp_path, {"ONE": "${env:TWO}", "TWO": "no"})
    assert tree == {"a": "${env:TWO}"}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("${env:MISSING}", "environment variable MISSING is not set"),
        ("${file:missing}", "cannot be read"),
        ("${vault:x}", "neither ${env:NAME} nor ${file:PATH}"),
        ("${env:}", "neither ${env:NAME} nor ${file:PATH}"),
        ("me:${env:HOME", "lacks its closing brace: write ${env:NAME}"),
        ("${file:secret", "lacks its closing brace"),
        ("${HOME}", "neither ${env:NAME} nor ${file:PATH}"),
    ],
)
def test_a_reference_to_nothing_is_a_fault_with_its_line(
    tmp_path: Path, reference: str, message: str
) -> None:
    _, issues = resolved(f"x: 1\na: '{reference}'", tmp_path)
    assert len(issues) == 1
    assert issues[0].startswith("f.yaml:2: a: ")
    assert message in issues[0]


def test_addresses_of_brokers_and_the_warehouse_are_shown_with_their_passwords_masked(
    tmp_path: Path,
) -> None:
    text = "warehouse: {path: '${env:PLACE}'}\nkafka: {bootstrap.servers: '${env:BROKERS}'}"
    environ = {"PLACE": "warehouse", "BROKERS": "broker-0:9092"}
    assert resolved(text, tmp_path, environ)[1] == []
    shown = "no topic at broker-0:9092, no warehouse at /here/warehouse"
    assert log.redact(shown) == shown
    resolved(text, tmp_path, {**environ, "PLACE": "hdfs://me:hush-hush@name/lake"})
    assert log.redact("hdfs://me:hush-hush@name/lake") == "hdfs://me:******@name/lake"


def test_a_file_that_is_no_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (65 << 10))
    _, issues = resolved("a: ${file:large}", tmp_path)
    assert "larger" in issues[0]


def test_what_was_referred_to_is_not_shown_any_more(tmp_path: Path) -> None:
    resolved("a: ${env:ONE}\nb: plain-value", tmp_path, {"ONE": "hunter22"})
    assert log.redact("hunter22 plain-value") == f"{log.MASK} plain-value"


def test_plain_secrets_are_not_shown_either(tmp_path: Path) -> None:
    resolved("kafka: {sasl.password: hunter22, sasl.username: someone}", tmp_path)
    assert log.redact("hunter22 someone") == f"{log.MASK} someone"


def test_a_secret_within_a_text_is_masked_alone(tmp_path: Path) -> None:
    environ = {"HOOK": "planted-77", "STAGE": "prod"}
    resolved("a: 'https://${env:STAGE}.example.org/${env:HOOK}?x'", tmp_path, environ)
    assert log.redact("GET /planted-77: 404 for products") == "GET /******: 404 for products"
    (tmp_path / "key").write_text("planted-78\n")
    resolved("a: upper(b '${file:key}')", tmp_path)
    assert (
        log.redact("cannot be parsed from 'planted-78' on") == "cannot be parsed from '******' on"
    )


def test_a_password_in_an_address_is_masked(tmp_path: Path) -> None:
    resolved("telemetry: {endpoint: 'http://me:planted-79@collector:4318'}", tmp_path)
    assert log.redact("http://me:planted-79@collector") == "http://me:******@collector"

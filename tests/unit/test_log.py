import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
import yaml

from ingestd import log
from ingestd.log import JsonFormatter, TextFormatter, add_secrets, bind, bind_thread, redact

LOG = logging.getLogger("ingestd.test")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(log, "_secrets", {})
    monkeypatch.setattr(log, "_process_fields", {})
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    logging.captureWarnings(False)


def line(
    message: str, /, cause: BaseException | None = None, **fields: object
) -> logging.LogRecord:
    exc_info = (type(cause), cause, cause.__traceback__) if cause else None
    record = logging.LogRecord("ingestd.x", logging.INFO, "f", 1, message, (), exc_info)
    record.ctx = fields
    return record


def as_json(record: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert text.isascii()
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_json_line_has_the_event_its_fields_and_a_time_in_utc() -> None:
    found = as_json(line("batch_finished", batch_id=3, snapshots={"db.t": 4}))
    assert found["event"] == "batch_finished"
    assert found["level"] == "INFO"
    assert found["batch_id"] == 3
    assert found["snapshots"] == {"db.t": 4}
    assert found["ts"].endswith("Z")


def test_a_field_cannot_replace_what_every_line_has() -> None:
    found = as_json(line("real", event="forged", level="DEBUG"))
    assert (found["event"], found["level"]) == ("real", "INFO")
    assert found["ctx_event"] == "forged"


def test_an_error_comes_with_type_message_and_stack() -> None:
    try:
        raise ValueError("no such thing")
    except ValueError as error:
        found = as_json(line("broke", error))
    assert found["error"]["type"] == "ValueError"
    assert found["error"]["message"] == "no such thing"
    assert "test_log.py" in found["error"]["stack"]


@pytest.mark.parametrize("evil", ["a\nINFO forged", "a\r\nb", "\x1b[2J", "a\u2028b", "a\x85b"])
def test_what_comes_from_outside_stays_on_its_line(evil: str) -> None:
    assert as_json(line("seen", topic=evil))["topic"] == evil
    text = TextFormatter().format(line("seen", topic=evil))
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


def test_a_text_line_shows_fields_and_quotes_what_has_blanks() -> None:
    text = TextFormatter().format(line("table_created", table="db.t", why="first seen"))
    assert text.endswith('INFO    table_created table=db.t why="first seen"')


def test_secrets_are_struck_out_wherever_they_appear() -> None:
    add_secrets(["hunter22"])
    record = line("failed", message="user x, password hunter22", where={"hunter22": ["hunter22"]})
    for text in (JsonFormatter().format(record), TextFormatter().format(record)):
        assert "hunter22" not in text
        assert "user x" in text


def test_secrets_in_a_stack_are_struck_out() -> None:
    add_secrets(["hunter22"])
    record = line("broke", ValueError("bad hunter22"))
    assert "hunter22" not in JsonFormatter().format(record)
    assert "hunter22" not in TextFormatter().format(record)


def test_a_field_with_a_telling_name_is_masked_even_if_nobody_registered_it() -> None:
    record = line("x")
    record.ctx = {"sasl.password": "p"}
    assert as_json(record)["sasl.password"] == log.MASK
    assert as_json(line("x", topic="p"))["topic"] == "p"


def test_a_secret_that_holds_another_is_struck_out_whole() -> None:
    add_secrets(["abcd", "abcdefgh"])
    assert redact("x abcdefgh y") == f"x {log.MASK} y"


@pytest.mark.parametrize(
    "middle", ["'", '"', "'\"", "\\", "é", "\u4e2d 文", "%+&/ =#", "\n\t", "😀"]
)
def test_a_secret_is_struck_out_in_whatever_form_it_is_quoted(middle: str) -> None:
    secret = f"Xq1{middle}Zq9"
    add_secrets([secret])
    forms = [
        repr(secret),
        ascii(secret),
        repr({"password": secret}),
        repr(f"""'{secret}" of both"""),
        repr(secret.encode()),
        repr(ValueError(secret)),
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        yaml.safe_dump({"s": secret}, allow_unicode=True, width=1000),
        yaml.safe_dump({"s": secret}, width=1000, default_style='"'),
        quote(secret),
        quote(secret, safe="").lower().replace("xq1", "Xq1").replace("zq9", "Zq9"),
        quote_plus(secret),
        urlencode({"password": secret}),
        json.dumps({"error": repr({"password": secret})}),
    ]
    for form in forms:
        shown = redact(f"error: {form} is refused")
        assert "Xq1" not in shown, form
        assert "Zq9" not in shown, form
        text = TextFormatter().format(line("failed", error=form, nested={"a": [secret]}))
        assert "Xq1" not in text, form


def test_common_words_are_not_taken_for_secrets() -> None:
    add_secrets(["true", "ab", "localhost"])
    assert redact("true ab localhost") == "true ab localhost"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("sasl.password", True),
        ("ssl.key.password", True),
        ("sasl.oauthbearer.client.secret", True),
        ("ssl.key.pem", True),
        ("dlf.access-key-secret", True),
        ("dlf.security-token", True),
        ("header.Authorization", True),
        ("dlf.token-path", False),
        ("token.provider", False),
        ("data-token.enabled", False),
        ("sasl.username", False),
        ("bootstrap.servers", False),
        ("primary-keys", False),
        ("primary_keys", False),
        ("bucket-key", False),
    ],
)
def test_names_of_secrets_are_known(name: str, secret: bool) -> None:
    assert log.is_secret_name(name) is secret


def test_bound_fields_end_with_their_block() -> None:
    with bind(table="a"), bind(snapshot=1):
        assert log.event_fields(line("x")) == {"table": "a", "snapshot": 1}
    assert log.event_fields(line("x")) == {}


def test_fields_bound_to_a_thread_stay_in_it() -> None:
    seen: list[dict[str, object]] = []

    def work() -> None:
        bind_thread(batch_id=7)
        seen.append(log.event_fields(line("x")))
        bind_thread(batch_id=None)
        seen.append(log.event_fields(line("x")))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [{"batch_id": 7}, {}]
    assert log.event_fields(line("x")) == {}


def test_auto_writes_json_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    log.configure_logging("info", "auto", stream=stream, pipeline="shop")
    LOG.info("hello", extra={"ctx": {"n": 1}})
    LOG.debug("silent")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["pipeline"] == "shop"
    assert json.loads(lines[0])["n"] == 1


def test_where_tokens_come_from_is_no_secret() -> None:
    assert not log.is_secret_name("sasl.oauthbearer.token.endpoint.url")
    assert log.is_secret_name("sasl.oauthbearer.client.secret")
    assert log.is_secret_name("bearer-auth-token")
    assert log.is_secret_name("basic-auth-user-info")

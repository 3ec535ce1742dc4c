"""Events reach a receiver in order and once it takes them, and hold nothing up."""

import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ingestd.config.notices_section import signing_key
from ingestd.daemon.notices import CONTENT_TYPE, CloudEvent, signature_headers
from ingestd.daemon.webhook import Webhook, WebhookSettings
from ingestd.errors import ConfigError
from tests.support.certificates import HAS_OPENSSL, Authority
from tests.support.dripping_server import HEAD, DrippingServer
from tests.support.scripted_http import Reply, ScriptedServer
from tests.unit.daemon.test_notices_cloud_event import SECRET

UNREACHABLE = "http://127.0.0.1:9/planted-path"


def event(number: int) -> CloudEvent:
    return CloudEvent(str(number), "ingestd.test", "/p", "s", 0.0, {"number": number})


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"ingestd_notices_{name}_total", labels) or 0.0


def growth(name: str, **labels: str) -> Callable[[], float]:
    before = count(name, **labels)
    return lambda: count(name, **labels) - before


def deliver(settings: WebhookSettings, events: list[CloudEvent], seconds: float = 60.0) -> None:
    webhook = Webhook(settings, clock=lambda: 1614265330.7)
    webhook.start()
    for each in events:
        webhook.offer(each)
    webhook.close(seconds)


def test_events_arrive_in_order_although_the_receiver_fails_at_first() -> None:
    sent, key = growth("sent", type="ingestd.test"), signing_key(SECRET)
    script = [Reply(503), None, Reply(404), Reply(200), Reply(429), Reply(202), Reply(204)]
    with ScriptedServer(script) as receiver:
        settings = WebhookSettings(f"{receiver.uri}/hook?x=1", key, first_wait=0.01)
        deliver(settings, [event(number) for number in range(3)])
    assert [asked.document["data"]["number"] for asked in receiver.asked] == [0, 0, 0, 0, 1, 1, 2]
    assert sent() == 3
    last = receiver.asked[-1]
    assert (last.method, last.path) == ("POST", "/hook?x=1")
    assert last.headers["content-type"] == CONTENT_TYPE
    signed = signature_headers(key, "2", 1614265330, event(2).body())
    assert signed.items() <= last.headers.items()


def test_a_redirect_is_not_followed_and_tried_again() -> None:
    sent = growth("sent", type="ingestd.test")
    with ScriptedServer([]) as elsewhere:
        moved = [Reply(status, headers={"Location": elsewhere.uri}) for status in (301, 302, 307)]
        with ScriptedServer([*moved, Reply(200)]) as receiver:
            deliver(WebhookSettings(receiver.uri, signing_key(SECRET), first_wait=0.01), [event(0)])
    assert [asked.document["id"] for asked in receiver.asked] == ["0"] * 4
    assert (sent(), elsewhere.asked) == (1, [])


def test_a_status_takes_the_event_although_the_body_does_not_arrive() -> None:
    sent = growth("sent", type="ingestd.test")
    with DrippingServer(HEAD % 100_000, b"x" * 100_000) as receiver:
        deliver(WebhookSettings(receiver.url), [event(0)], seconds=15.0)
    assert sent() == 1


def test_a_receiver_that_does_not_answer_holds_up_neither_new_events_nor_the_end() -> None:
    answers, stopped = threading.Event(), growth("dropped", reason="stopped")

    def late(_: object) -> Reply:
        assert answers.wait(60)
        return Reply(200)

    with ScriptedServer([late]) as receiver:
        webhook = Webhook(WebhookSettings(receiver.uri))
        webhook.start()
        for number in range(3):
            webhook.offer(event(number))
        webhook.close(0.05)
        answers.set()
    assert stopped() == 3


def test_a_refused_event_is_dropped_and_the_next_ones_are_sent() -> None:
    refused = growth("dropped", reason="refused")
    with ScriptedServer([Reply(400), Reply(410), Reply(101), Reply(600), Reply(200)]) as receiver:
        deliver(WebhookSettings(receiver.uri), [event(number) for number in range(5)])
    assert len(receiver.asked) == 5
    assert "webhook-signature" not in receiver.asked[0].headers
    assert refused() == 4


def test_a_full_queue_drops_and_an_unreachable_receiver_ends_with_the_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    full, stopped = growth("dropped", reason="queue-full"), growth("dropped", reason="stopped")
    settings = WebhookSettings(UNREACHABLE, capacity=2, first_wait=0.01)
    deliver(settings, [event(number) for number in range(5)], seconds=0.2)
    assert (full(), stopped()) == (3, 2)
    logged = [str(vars(record).get("ctx")) for record in caplog.records]
    assert any("queue-full" in line for line in logged)
    assert not any("planted-path" in line for line in logged)


@pytest.mark.skipif(not HAS_OPENSSL, reason="makes certificates with openssl")
def test_a_receiver_with_a_private_authority_is_trusted_if_it_is_configured(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with ScriptedServer([Reply(200)]) as receiver:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.sign("receiver").both)
        receiver._server.socket = context.wrap_socket(receiver._server.socket, server_side=True)
        url = receiver.uri.replace("http:", "https:")
        deliver(WebhookSettings(url, first_wait=0.01), [event(0)], seconds=0.2)
        deliver(WebhookSettings(url, ca_location=str(authority.path)), [event(1)])
    assert [asked.document["data"]["number"] for asked in receiver.asked] == [1]
    with pytest.raises(ConfigError, match="ssl-ca-location"):
        Webhook(WebhookSettings(url, ca_location=str(tmp_path / "absent")))

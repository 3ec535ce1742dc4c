"""Events as CloudEvents 1.0, signed as Standard Webhooks define."""

import json

from ingestd.config.notices_section import signing_key
from ingestd.daemon.notices import CloudEvent, signature_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_body_is_an_event_in_structured_json_mode() -> None:
    event = CloudEvent("1", "ingestd.x", "/ingestd/pipelines/p", "db.t", 1.5, {"a": "ü\ud800"})
    assert json.loads(event.body()) == {
        "specversion": "1.0",
        "id": "1",
        "type": "ingestd.x",
        "source": "/ingestd/pipelines/p",
        "subject": "db.t",
        "time": "1970-01-01T00:00:01.500+00:00",
        "datacontenttype": "application/json",
        "data": {"a": "ü?"},
    }


def test_a_signature_is_that_of_the_library_of_standard_webhooks() -> None:
    headers = signature_headers(
        signing_key(SECRET),
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }

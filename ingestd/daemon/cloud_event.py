"""Events in the structured JSON mode of CloudEvents 1.0, signed as Standard Webhooks define."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingestd.errors import ConfigError

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_PREFIX = "whsec_"
_FEWEST_BYTES = 24
"""The shortest key that Standard Webhooks allow."""


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """An event; `at` is in seconds since 1970, `data` is its JSON document.

    `source` is the pipeline as a URI reference, `subject` is the table, topic or partition.
    """

    id: str
    type: str
    source: str
    subject: str
    at: float
    data: Mapping[str, Any]

    def body(self) -> bytes:
        """Return the body of the request."""
        document = {
            "specversion": "1.0",
            "id": self.id,
            "type": self.type,
            "source": self.source,
            "subject": self.subject,
            "time": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds"),
            "datacontenttype": "application/json",
            "data": self.data,
        }
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def signing_key(secret: str) -> bytes:
    """Return the key of a secret, `whsec_` and base64 of at least 24 bytes.

    Raises ConfigError for another form, or a shorter key.
    """
    encoded = secret.removeprefix(_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        key = b""
    if encoded == secret or len(key) < _FEWEST_BYTES:
        raise ConfigError(
            "notices: 'signing-secret' must be whsec_ followed by base64 of at least "
            f"{_FEWEST_BYTES} bytes, such as the output of: "
            'echo "whsec_$(openssl rand -base64 32)"'
        )
    return key


def signature_headers(key: bytes, event_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body sent at `seconds` since 1970."""
    signed = b".".join((event_id.encode(), str(seconds).encode(), body))
    digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{digest}",
    }

"""The section `notices`: the webhook to which the daemon reports events."""

import base64
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from ingestd.config.section import Section
from ingestd.config.values import is_http_url

_PREFIX = "whsec_"
_FEWEST_BYTES = 24
"""The shortest key that Standard Webhooks allow."""


def signing_key(secret: str) -> bytes:
    """Decode the signing key of a secret: `whsec_` and base64 of at least 24 bytes.

    Raises ValueError, without the secret, for another form or a shorter key.
    """
    encoded = secret.removeprefix(_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        key = b""
    if encoded == secret or len(key) < _FEWEST_BYTES:
        raise ValueError(
            f"must be {_PREFIX} followed by base64 of at least {_FEWEST_BYTES} bytes, such as the "
            f'output of: echo "{_PREFIX}$(openssl rand -base64 32)"'
        )
    return key


class NoticesSection(Section):
    """Events of the pipeline, sent to a webhook as CloudEvents."""

    url: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Address of a receiver of CloudEvents 1.0 (structured JSON mode, POST): new "
        "tables, schema changes, topics and partitions that are set aside, and the end of the "
        "pipeline. Write `${env:NAME}` or `${file:PATH}` if it contains a secret.",
    )
    signing_secret: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="Secret that signs requests as Standard Webhooks define (HMAC-SHA256, header "
        "`webhook-signature`): `whsec_` and base64 of at "
        "least 24 bytes. Write `${env:NAME}` or `${file:PATH}`.",
    )
    ssl_ca_location: str | None = Field(
        default=None,
        min_length=1,
        description="File with trusted CA certificates; by default those of the system.",
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not is_http_url(value):
            raise ValueError("give the address of the receiver, as https://host/path")
        url = urlsplit(value)
        if url.username or url.password:
            raise ValueError("the address contains a user; set 'signing-secret' instead")
        return value

    @field_validator("signing_secret")
    @classmethod
    def _is_key(cls, value: str | None) -> str | None:
        if value is not None:
            signing_key(value)
        return value

    @model_validator(mode="after")
    def _needs_url(self) -> Self:
        if self.url is None and (self.signing_secret or self.ssl_ca_location):
            raise ValueError("'signing-secret' and 'ssl-ca-location' need 'url'")
        return self

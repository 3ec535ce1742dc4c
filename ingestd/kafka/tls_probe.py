"""Find out why a broker's certificate was refused, by a separate TLS handshake.

The client library reports only that it could not be verified, both for an expired certificate and
for one of an unknown authority.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from socket import create_connection

_SECONDS = 5.0


def certificate_error(address: str, properties: Mapping[str, str]) -> str | None:
    """Return why the certificate at HOST:PORT fails verification, in OpenSSL's words.

    `properties` are those of the Kafka client. None if the certificate is valid, or if the broker
    does not answer within a few seconds.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        context = _context(properties)
        with (
            create_connection((host, int(port)), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, ValueError):  # the client library reports all other errors itself
        return None


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    text, location = properties.get("ssl.ca.pem"), properties.get("ssl.ca.location")
    given = Path(location) if location and location != "probe" else None
    is_folder = given is not None and given.is_dir()
    context = ssl.create_default_context(
        cadata=text,
        cafile=None if is_folder else given,
        capath=given if is_folder else None,
    )
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    return context

"""What is wrong with the certificate of a broker, by a handshake of our own.

The client library only says that it could not be verified, which is as true of one that has expired
as of one that no one trusts.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from socket import create_connection

_SECONDS = 5.0


def certificate_error(address: str, properties: Mapping[str, str]) -> str | None:
    """Why the certificate at HOST:PORT does not pass, in OpenSSL's words; None if it does.

    `properties` are those of the Kafka client. None too if no one answers in a few seconds.
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
    except (OSError, ValueError):  # what else may be wrong the client library says itself
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

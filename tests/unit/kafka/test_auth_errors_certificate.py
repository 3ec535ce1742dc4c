"""What a handshake of our own finds wrong with a certificate."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ingestd.kafka.auth_errors import certificate_error
from tests.support.certificates import HAS_OPENSSL, Authority, Certificate

pytestmark = pytest.mark.skipif(not HAS_OPENSSL, reason="makes certificates with openssl")


@contextmanager
def server(shown: Certificate) -> Iterator[str]:
    """The address of a server that shows this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(shown.certificate, shown.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with (
                        connection,
                        suppress(OSError),
                        context.wrap_socket(connection, server_side=True),
                    ):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_good_expired_foreign_and_misnamed_ones_are_distinguished(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trusted = {"ssl.ca.location": str(authority.path)}
    with server(authority.sign("good")) as address:
        assert certificate_error(address, trusted) is None
        assert certificate_error(address, {"ssl.ca.pem": authority.path.read_text()}) is None
        assert "issuer" in (certificate_error(address, {}) or "")
    with server(authority.sign("old", expired=True)) as address:
        assert "expired" in (certificate_error(address, trusted) or "")
    with server(authority.sign("other", host="kafka.test")) as address:
        assert "mismatch" in (certificate_error(address, trusted) or "")
        unnamed = {**trusted, "ssl.endpoint.identification.algorithm": "none"}
        assert certificate_error(address, unnamed) is None


def test_where_nobody_answers_nothing_is_known() -> None:
    assert certificate_error("127.0.0.1:1", {}) is None
    assert certificate_error("no address", {}) is None

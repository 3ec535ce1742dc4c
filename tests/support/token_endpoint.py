"""A server that gives out tokens to clients that know their secret, as OAuth's are; unsigned."""

import json
import time
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from tests.support.certificates import Certificate
from tests.support.http_serving import HttpServing

CLIENT = "ingestd"
CLIENT_SECRET = "planted-oauth-55c0"


class TokenEndpoint(HttpServing):
    """Tokens of this many seconds for `CLIENT`; while `down` it only says that it cannot.

    `forms` are the bodies of the requests, as lists of values by name.
    """

    def __init__(self, seconds: float = 3600.0, certificate: Certificate | None = None) -> None:
        self.given = 0
        self.down = False
        self.forms: list[dict[str, list[str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body_size = int(self.headers.get("Content-Length", 0))
                outer.forms.append(parse_qs(self.rfile.read(body_size).decode()))
                known = _is_known(self.headers.get("Authorization", ""))
                status = 503 if outer.down else 200 if known else 401
                body: dict[str, Any] = {"error": "invalid_client"}
                if status == 200:
                    outer.given += 1
                    body = {
                        "access_token": unsigned_token(seconds, number=outer.given),
                        "token_type": "Bearer",
                    }
                    body["expires_in"] = int(seconds)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Nothing: tests are quiet."""

        super().__init__(Handler, certificate)

    @property
    def url(self) -> str:
        """Where tokens are asked for."""
        return f"{self.endpoint}/token"


def _is_known(authorization: str) -> bool:
    kind, _, code = authorization.partition(" ")
    return kind == "Basic" and b64decode(code).decode() == f"{CLIENT}:{CLIENT_SECRET}"


def unsigned_token(seconds: float, subject: str = "reader", number: int = 0) -> str:
    """A token for this many seconds from now; tokens of other numbers differ."""
    now = time.time()
    claims = {
        "sub": subject,
        "iat": int(now),
        "exp": int(now + seconds),
        "scope": "",
        "jti": str(number),
    }
    parts = [json.dumps(one).encode() for one in ({"alg": "none"}, claims)]
    return ".".join([*(urlsafe_b64encode(one).decode().rstrip("=") for one in parts), ""])


def has_expired(token: str) -> bool:
    """Whether a token is none, or its time is up; a second of grace makes up for whole seconds."""
    if token.count(".") != 2:
        return True
    claims = token.split(".")[1]
    expiry: int = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
    return time.time() >= expiry + 1

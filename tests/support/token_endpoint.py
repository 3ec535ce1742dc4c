"""A server that gives out tokens to clients that know their secret, as OAuth's are; unsigned."""

import json
import time
from base64 import b64decode, urlsafe_b64encode
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.http_serving import HttpServing

CLIENT = "ingestd"
CLIENT_SECRET = "planted-oauth-55c0"


class TokenEndpoint(HttpServing):
    """Tokens of this many seconds for `CLIENT`; while `down` it only says that it cannot."""

    def __init__(self, seconds: float = 3600.0) -> None:
        self.given = 0
        self.down = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                known = _is_known(self.headers.get("Authorization", ""))
                status = 503 if outer.down else 200 if known else 401
                body: dict[str, Any] = {"error": "invalid_client"}
                if status == 200:
                    outer.given += 1
                    body = {"access_token": unsigned_token(seconds), "token_type": "Bearer"}
                    body["expires_in"] = int(seconds)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Nothing: tests are quiet."""

        super().__init__(Handler)

    @property
    def url(self) -> str:
        """Where tokens are asked for."""
        return f"{self.endpoint}/token"


def _is_known(authorization: str) -> bool:
    kind, _, code = authorization.partition(" ")
    return kind == "Basic" and b64decode(code).decode() == f"{CLIENT}:{CLIENT_SECRET}"


def unsigned_token(seconds: float, subject: str = "reader") -> str:
    """A token for this many seconds from now."""
    now = time.time()
    claims = {"sub": subject, "iat": int(now), "exp": int(now + seconds), "scope": ""}
    parts = [json.dumps(one).encode() for one in ({"alg": "none"}, claims)]
    return ".".join([*(urlsafe_b64encode(one).decode().rstrip("=") for one in parts), ""])

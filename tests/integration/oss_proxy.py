"""Stands in front of an S3 server as OSS does: another condition of a put, buckets in host names.

    with OssProxy(server.endpoint) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.endpoint)
        file_io_for("oss://lake", {"fs.oss.endpoint": f"http://{HOST}", ...})

As an HTTP proxy it gets the requests to any host. What OSS does is taken from its documentation and
from reports of users; `versioned` is a bucket with versioning, which ignores the condition.
"""

import http.client
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.integration.s3_proxy import Answer, FaultyProxy

HOST = "oss-cn-test.example"
VIRTUAL_DOMAIN = f"s3.{HOST}"
_CONDITION = "x-oss-forbid-overwrite"
_EMPTY = {"Content-Length": "0"}


class OssProxy(FaultyProxy):
    """A proxy on a free port, whose `versioned` may be set at any time."""

    versioned = False

    def forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        """Pass one request on with the condition that an S3 server knows."""
        headers = handler.headers
        if not headers["Host"].endswith(f".{VIRTUAL_DOMAIN}"):
            return Answer(403, "SecondLevelDomainForbidden", _EMPTY)
        if headers.get("If-None-Match"):
            return Answer(501, "NotImplemented", _EMPTY)
        parts = urlsplit(handler.path)
        handler.path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if headers.get(_CONDITION) == "true" and not self.versioned:
            headers["If-None-Match"] = "*"
        answer = super().forward(handler, body)
        if answer.status == http.client.PRECONDITION_FAILED:
            return Answer(409, "FileAlreadyExists", _EMPTY)
        return answer

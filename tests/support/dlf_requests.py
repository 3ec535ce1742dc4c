"""Requests to sign with an access key of DLF, and the headers that ingestd adds to them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ingestd.paimon.catalog.rest_auth import AuthRequest
from ingestd.paimon.catalog.rest_dlf import AccessKey, default_headers, openapi_headers

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "dlf_signatures.jsonl"
_LISTED: dict[str, Any] = {
    "region": "cn-hangzhou",
    "host": "cn-hangzhou-vpc.dlf.aliyuncs.com:8080",
    "key_id": "LTAI-of-tests",
    "secret": "a secret of tests/+=",
    "session_token": None,
    "method": "GET",
    "path": "/v1/lake/databases",
    "parameters": {"maxResults": "100", "pageToken": "a b~*é+/", "empty": ""},
    "body": None,
    "at": 1_780_000_000,
}
_COMMITTED = {
    **_LISTED,
    "session_token": "an STS token",
    "method": "POST",
    "path": "/v1/lake/databases/shop/tables/orders%24branch_b%C3%A9/commit",
    "parameters": {},
    "body": '{"snapshot": {"id": 1, "commitUser": "é"}}',
    "at": 1_767_225_599,
}
_CONFIG = {**_LISTED, "path": "/v1/config", "parameters": {"warehouse": "my lake"}}
FIXED = [
    {**request, "signature": signature}
    for request in (_LISTED, _COMMITTED, _CONFIG)
    for signature in ("default", "openapi")
]


def signed(request: dict[str, Any], nonce: str) -> dict[str, str]:
    """The headers that ingestd adds to a request; of Java's it takes the nonce alone."""
    query = urlencode(request["parameters"])
    target = request["path"] + (f"?{query}" if query else "")
    body = request["body"]
    sent = AuthRequest(request["method"], target, None if body is None else body.encode())
    key = AccessKey(request["key_id"], request["secret"], request["session_token"])
    at = datetime.fromtimestamp(request["at"], UTC)
    if request["signature"] == "openapi":
        return openapi_headers(sent, key, at, request["host"], nonce)
    return default_headers(sent, key, at, request["region"])

"""Object stores by the scheme of a path, configured by Paimon's own option names.

What no option says comes from the environment, as the cloud's own tools take it: AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL, web identity, instance metadata.
"""

import functools
import os
from datetime import timedelta
from typing import Any

from obstore.store import S3Store

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.store_options import S3_NAMES, SCHEMES, bare_name

_RETRIES = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")


@functools.lru_cache(maxsize=64)
def open_store(scheme: str, bucket: str, options: frozenset[tuple[str, str]]) -> S3Store:
    """The store of a bucket; one for all that a process does with it.

    UnsupportedError for other schemes than `SCHEMES`.
    """
    if scheme not in SCHEMES:
        raise UnsupportedError(f"{scheme}://{bucket}: there is no store for this scheme")
    config: Any = {}
    for name, value in options:
        theirs = S3_NAMES[bare_name(name)]
        if theirs == "virtual_hosted_style_request":
            value = "false" if value.lower() == "true" else "true"
        config[theirs] = value
    if not any(os.environ.get(name) for name in _REGION):
        config.setdefault("region", "us-east-1")
    endpoint = str(config.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", ""))
    plain = endpoint.startswith("http://")
    client: Any = {"allow_http": plain} if plain else {}
    retries: Any = _RETRIES
    return S3Store(bucket, config=config, client_options=client or None, retry_config=retries)

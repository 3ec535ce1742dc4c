"""Tokens for OAUTHBEARER that are computed in Python.

librdkafka calls the token function when a client starts and again before its token expires.
"""

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from ingestd.kafka.properties import (
    TOKEN_CONFIG,
    TOKEN_EXTENSIONS,
    TOKEN_FUNCTION,
    KafkaSource,
    msk_region,
)

_LOG = logging.getLogger(__name__)
TokenFunction: TypeAlias = Callable[[str], tuple[str, float, str, dict[str, str]]]
"""Returns a token for the value of `sasl.oauthbearer.config`.

The result is the token, its expiry in seconds since 1970, the principal, and SASL extensions.
"""


def token_function(source: KafkaSource) -> TokenFunction | None:
    """Return the Python function that computes the tokens of a source; None if `signer` is None.

    Packages of AWS are imported only by this function. Raises ConfigError, ImportError,
    RuntimeError or ValueError for invalid properties.
    """
    if source.signer is None:
        return None
    if source.signer == "AWS_MSK_IAM":
        module = import_module("ingestd.kafka.msk_tokens")
        function = module.MskTokens(msk_region(source))
    else:
        # The Python client itself would call this function, for its own clients only.
        module = import_module("confluent_kafka._oauthbearer.aws.aws_autowire")
        given = source.properties
        function = module.create_handler(given.get(TOKEN_CONFIG), given.get(TOKEN_EXTENSIONS))
    return _logged(source.name, function)


def _logged(source_name: str, function: TokenFunction) -> TokenFunction:
    """Wrap a token function to log its errors, which the Python client does not report."""

    def token(config: str) -> tuple[str, float, str, dict[str, str]]:
        try:
            return function(config)
        except BaseException as error:
            why = {"source": source_name, "error": f"{type(error).__name__}: {error}"}
            _LOG.warning("kafka_token_failed", extra={"ctx": why})
            raise

    return token


def with_token_function(source: KafkaSource, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return properties for a Python client, with the token function if the source has one.

    Raises ConfigError, ImportError, RuntimeError or ValueError for invalid properties.
    """
    function = token_function(source)
    return dict(properties) if function is None else {**properties, TOKEN_FUNCTION: function}

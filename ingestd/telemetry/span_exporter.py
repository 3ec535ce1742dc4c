"""Open the exporter of spans, if its packages are installed."""

import os
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast
from urllib.parse import unquote

from ingestd.errors import ConfigError
from ingestd.log import add_secrets, is_secret_name
from ingestd.telemetry.spans import SpanSink

_EXPORTER = "ingestd.telemetry.otlp"
_PACKAGES = "opentelemetry"
_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(TRACES_)?HEADERS")
_ENDPOINT = re.compile(r"OTEL_EXPORTER_OTLP_(TRACES_)?ENDPOINT")
_PASSWORD = re.compile(r"\w+://[^/@:]*:([^/@]+)@")
_LONG = 16
"""Header values of at least this length are treated as secrets, whatever their names."""


def open_sink(pipeline: str, version: str, endpoint: str | None) -> SpanSink:
    """Return a sink for the spans of a pipeline.

    `endpoint` is the base URL of the collector (None: the environment determines it). Credentials
    for the collector are masked in the log from now on, because its responses may repeat them.
    Raises ConfigError if the extra `otel` is not installed.
    """
    try:
        listener = import_module(_EXPORTER)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(_PACKAGES):
            raise
        raise ConfigError(
            f"telemetry.traces: otlp needs the package {error.name}, which is not installed; "
            "install it with `pip install 'ingestd[otel]'`, or set telemetry.traces to none"
        ) from error
    add_secrets(secrets_of(os.environ, endpoint))
    return cast("SpanSink", listener.OtlpSink(pipeline, version, endpoint))


def secrets_of(environment: Mapping[str, str], endpoint: str | None) -> Iterator[str]:
    """Yield passwords in the collector's addresses, and header values that may be secrets.

    They come from the `OTEL_EXPORTER_OTLP_*` variables in `environment` and from `endpoint`, the
    address in the configuration (None: not set).
    """
    addresses = [] if endpoint is None else [endpoint]
    for name, text in environment.items():
        if _HEADERS.fullmatch(name):
            for header in text.split(","):
                yield from _secrets_of_header(*header.partition("=")[::2])
        elif _ENDPOINT.fullmatch(name):
            addresses.append(text)
    for address in addresses:
        if match := _PASSWORD.match(address):
            yield from {match[1], unquote(match[1])}


def _secrets_of_header(name: str, value: str) -> Iterator[str]:
    """Yield the forms of a header value that may be a secret: as configured, decoded, last word.

    A short value is yielded only if the name of the header indicates a secret.
    """
    may_be_secret = is_secret_name(name) or "auth" in name.lower()
    for form in {value.strip(), unquote(value.strip())}:
        if may_be_secret or len(form) >= _LONG:
            yield form
            yield form.rpartition(" ")[2]

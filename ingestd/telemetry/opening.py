"""Opens the way to a collector, if its packages are there."""

import os
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast
from urllib.parse import unquote

from ingestd.errors import ConfigError
from ingestd.log import add_secrets, is_secret_name
from ingestd.telemetry.spans import SpanSink

_DOOR = "ingestd.telemetry.otlp"
_PACKAGES = "opentelemetry"
_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(TRACES_)?HEADERS")
_ENDPOINT = re.compile(r"OTEL_EXPORTER_OTLP_(TRACES_)?ENDPOINT")
_PASSWORD = re.compile(r"\w+://[^/@:]*:([^/@]+)@")
_LONG = 16
"""Values of headers of so many characters are secrets whatever their names."""


def open_sink(pipeline: str, version: str, endpoint: str | None) -> SpanSink:
    """A sink for the spans of a pipeline; `endpoint` as in `ingestd.telemetry.otlp.OtlpSink`.

    What lets us in at the collector is struck out of the log from now on: its answers may repeat
    it. Raises ConfigError, saying what to install, when the extra `otel` is not there.
    """
    try:
        listener = import_module(_DOOR)
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
    """Passwords in addresses of the collector, and the values of headers that may be secrets."""
    addresses = [] if endpoint is None else [endpoint]
    for name, text in environment.items():
        if _HEADERS.fullmatch(name):
            for header in text.split(","):
                yield from _secrets_of_header(*header.partition("=")[::2])
        elif _ENDPOINT.fullmatch(name):
            addresses.append(text)
    for address in addresses:
        if found := _PASSWORD.match(address):
            yield from {found[1], unquote(found[1])}


def _secrets_of_header(name: str, value: str) -> Iterator[str]:
    """The value as it is given and as it is sent; of several words the last one, too."""
    telling = is_secret_name(name) or "auth" in name.lower()
    for form in {value.strip(), unquote(value.strip())}:
        if telling or len(form) >= _LONG:
            yield form
            yield form.rpartition(" ")[2]

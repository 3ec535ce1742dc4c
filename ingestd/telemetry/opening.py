"""Opens the way to a collector, if its packages are there."""

from importlib import import_module
from typing import cast

from ingestd.errors import ConfigError
from ingestd.telemetry.spans import SpanSink

_DOOR = "ingestd.telemetry.otlp"
_PACKAGES = "opentelemetry"


def open_sink(pipeline: str, version: str, endpoint: str | None) -> SpanSink:
    """A sink for the spans of a pipeline; `endpoint` as in `ingestd.telemetry.otlp.OtlpSink`.

    Raises ConfigError, saying what to install, when the extra `otel` is not there.
    """
    try:
        door = import_module(_DOOR)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(_PACKAGES):
            raise
        raise ConfigError(
            f"telemetry.traces: otlp needs the package {error.name}, which is not installed; "
            "install it with `pip install 'ingestd[otel]'`, or set telemetry.traces to none"
        ) from error
    return cast("SpanSink", door.OtlpSink(pipeline, version, endpoint))

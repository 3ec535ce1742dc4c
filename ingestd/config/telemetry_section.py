"""The section `telemetry`."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from ingestd.config.section import Section


class TelemetrySection(Section):
    """Traces of batches, sent to an OpenTelemetry collector."""

    traces: Literal["none", "otlp"] = Field(
        default="none",
        description="`otlp` sends a trace of each batch to a collector by OTLP over HTTP; needs "
        "the extra `ingestd[otel]`. `OTEL_...` variables alone do not turn it on.",
    )
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="Base URL of the collector, such as `http://collector:4318`; default "
        "`OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`. Headers, "
        "certificates, sampling and the service name are set by the standard "
        "`OTEL_...` variables.",
    )

    @field_validator("endpoint")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("give the collector's base URL, as http://collector:4318")
        return value

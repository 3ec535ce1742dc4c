"""The section on traces: nothing is sent unless it says so."""

import pytest
from pydantic import ValidationError

from ingestd.config.model import TelemetrySection


def test_nothing_is_sent_unless_it_is_asked_for() -> None:
    assert TelemetrySection().traces == "none"


def test_the_collector_is_a_url() -> None:
    section = TelemetrySection.model_validate({"traces": "otlp", "endpoint": "https://c:4318"})
    assert (section.traces, section.endpoint) == ("otlp", "https://c:4318")


@pytest.mark.parametrize("endpoint", ["collector:4318", "grpc://collector:4317", "http://", ""])
def test_what_is_no_url_of_http_is_refused(endpoint: str) -> None:
    with pytest.raises(ValidationError, match="endpoint"):
        TelemetrySection.model_validate({"endpoint": endpoint})

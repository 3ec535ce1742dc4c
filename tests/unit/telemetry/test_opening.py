"""The way to a collector, where its packages are there and where they are not."""

import sys

import pytest

from ingestd.errors import ConfigError
from ingestd.telemetry.opening import open_sink
from ingestd.telemetry.spans import Span
from tests.support.otlp_receiver import OtlpReceiver


def test_it_opens_the_door() -> None:
    with OtlpReceiver() as receiver:
        sink = open_sink("shop", "1", receiver.endpoint)
        sink.take(Span("batch", 1, 2))
        sink.close()
        assert [one.name for one in receiver.spans] == ["batch"]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ingestd.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'ingestd\[otel\]'"):
        open_sink("shop", "1", None)

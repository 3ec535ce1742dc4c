"""What the development broker says when it cannot run."""

from pathlib import Path

import pytest

from ingestd.dev.broker import BrokerError, DevBroker
from ingestd.errors import ConfigError


def test_missing_java_is_said_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    broker = DevBroker()
    with pytest.raises(ConfigError, match="java is not found"):
        broker.start()
    assert not broker.running
    assert not list(tmp_path.iterdir())


def test_a_broker_that_never_ran_can_be_stopped_and_has_no_log() -> None:
    broker = DevBroker()
    broker.stop()
    with pytest.raises(BrokerError, match="has not been started"):
        broker.log  # noqa: B018

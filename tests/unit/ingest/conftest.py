"""Stages under test decode the records of the rig, whatever format a source names."""

import pytest

from ingestd.ingest.stages import decode_stage
from tests.support.json_changes import JsonChanges


@pytest.fixture
def json_changes(monkeypatch: pytest.MonkeyPatch) -> JsonChanges:
    """The data format of the rig, in place of the real ones."""
    shared = JsonChanges()
    monkeypatch.setattr(decode_stage, "shared_data_format", lambda *which: shared)
    return shared

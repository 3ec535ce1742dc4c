"""Whether there is a native extension is decided in one place, and said."""

import importlib
import logging
import os
import shutil
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.cdc import native_module


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    native_module.native_module.cache_clear()
    yield
    native_module.native_module.cache_clear()


def give(monkeypatch: pytest.MonkeyPatch, found: object) -> None:
    def load(name: str) -> object:
        assert name == "ingestd_native"
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(importlib, "import_module", load)


def context(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    [record] = [record for record in caplog.records if record.message == "json_decoder"]
    fields: dict[str, Any] = record.__dict__["ctx"]
    return fields


def test_without_the_extension_messages_are_decoded_in_python(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    give(monkeypatch, ModuleNotFoundError("No module named 'ingestd_native'"))
    with caplog.at_level(logging.INFO):
        assert native_module.decoder_name() == "python"
        assert native_module.decoder_name() == "python"
    assert "ingestd_native" in context(caplog)["reason"]


def test_an_extension_of_another_version_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    give(monkeypatch, SimpleNamespace(FORMAT=0))
    assert native_module.native_module() is None
    assert "version" in context(caplog)["reason"]


def test_the_extension_is_used_and_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    give(monkeypatch, SimpleNamespace(FORMAT=native_module._FORMAT))
    with caplog.at_level(logging.INFO):
        assert native_module.decoder_name() == "native"
        assert native_module.decoder_name() == "native"
    assert context(caplog) == {"decoder": "native"}


@pytest.mark.skipif(
    "CI" not in os.environ or shutil.which("cargo") is None,
    reason="only continuous integration must have the extension, and only where there is cargo",
)
def test_continuous_integration_has_the_extension() -> None:
    assert native_module.decoder_name() == "native"

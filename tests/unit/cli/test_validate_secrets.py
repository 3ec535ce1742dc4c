"""Secrets of an object store, planted in a configuration, are in no answer and no error."""

from pathlib import Path

import pytest
import yaml

from ingestd.cli import validate
from ingestd.errors import StorageError
from tests.support.command_line import run_command
from tests.support.planted import Planted

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def planted() -> Planted:
    return Planted()


@pytest.fixture
def config(tmp_path: Path, planted: Planted) -> Path:
    options = {
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.access-key": planted.secret("access-key"),
        "s3.secret-key": planted.file(tmp_path, "secret-key"),
    }
    document = {
        "warehouse": {"path": "s3://lake/w", "options": options},
        "sources": {"s": {"kafka": {"bootstrap.servers": "x:1"}, "topics": ["t"], "format": "raw"}},
    }
    file = tmp_path / "ingestd.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["table", "json"])
def test_what_takes_effect_is_shown_without_them(
    options: tuple[str, ...], config: Path, planted: Planted, capsys: Capture
) -> None:
    done = run_command(capsys, "validate", "-c", config, *options)
    assert (done.code, "******" in done.out) == (0, True)
    assert planted.search({"out": done.out, "err": done.err}.items()) == {}


def test_an_error_that_repeats_them_is_printed_without_them(
    config: Path, planted: Planted, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(loaded: object) -> list[object]:
        raise StorageError("refused " + " ".join(planted.by_place.values()))

    monkeypatch.setattr(validate, "effective_settings", refuse)
    for debug in ((), ("--debug",)):
        done = run_command(capsys, *debug, "validate", "-c", config)
        assert (done.code, "refused" in done.err) == (4, True)
        assert planted.search({"out": done.out, "err": done.err}.items()) == {}


def test_a_file_with_a_mistake_is_reported_without_them(
    config: Path, planted: Planted, capsys: Capture
) -> None:
    document = yaml.safe_load(config.read_text())
    document["warehouse"]["catalog"] = {"token": planted.secret("token"), "urii": "x"}
    config.write_text(yaml.safe_dump(document))
    done = run_command(capsys, "validate", "-c", config, "--json")
    assert (done.code, "did you mean" in done.err) == (2, True)
    assert planted.search({"out": done.out, "err": done.err}.items()) == {}


def test_the_search_finds_secrets_whole_and_in_base64(planted: Planted) -> None:
    value = planted.secret("somewhere")
    encoded = ["bWU6cGxhbnRlZC0wLXNvbWV3aGVyZS1hQjMkeA==", value, f"x{value}y"]
    assert [planted.found_in(one) for one in encoded] == [["somewhere"]] * 3
    assert planted.found_in("planted") == []

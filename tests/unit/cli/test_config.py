"""`ingestd config schema` prints the schema that the model has."""

import json
import subprocess
import sys

import pytest

from ingestd.config.json_schema import config_schema
from tests.support.command_line import run_command


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(run_command(capsys, "config", "schema").out) == config_schema()


def test_the_package_runs_as_the_command_line() -> None:
    line = [sys.executable, "-m", "ingestd", "config", "schema"]
    found = subprocess.run(line, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)["title"] == "Configuration of ingestd"

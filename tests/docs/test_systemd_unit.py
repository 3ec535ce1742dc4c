"""systemd accepts the unit, which ends and restarts the daemon by its exit codes."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, FencedError, PolicyStopError, RetryableError, StorageError
from tests.support.code_blocks import ROOT

UNIT = ROOT / "config" / "ingestd.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/ingestd/bin/ingestd", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True
    )
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, complaints) == (0, [])


def service_section() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    return unit["Service"]


def test_the_history_of_the_console_survives_a_restart() -> None:
    """`PrivateTmp` gives each run an empty /tmp."""
    service = service_section()
    assert service["Environment"] == f"SPARK_LOCAL_DIRS=%C/{service['CacheDirectory']}"


def test_the_daemon_ends_by_sigterm_and_restarts_only_where_that_helps() -> None:
    service = service_section()
    assert (service["KillSignal"], service["KillMode"]) == ("SIGTERM", "mixed")
    prevented = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert prevented == {kind.exit_code for kind in (ConfigError, PolicyStopError, FencedError)}
    assert not prevented & {RetryableError.exit_code, StorageError.exit_code}

"""`ingestd run` as a process: how it begins, what it prints, how it ends when it cannot work."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CANARY = "canary-7f3a91"
COMMAND = [sys.executable, "-c", "from ingestd.cli.main import main; main()"]


def config(folder: Path, **sections: object) -> Path:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = probe.getsockname()[1]
    kafka = {
        "bootstrap.servers": f"127.0.0.1:{nobody}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "someone",
        "sasl.password": "${env:CANARY}",
        "socket.timeout.ms": "1000",
    }
    source = {"kafka": kafka, "topics": ["t"], "format": "debezium-json"}
    document = {
        "warehouse": {"path": str(folder / "lake")},
        "sources": {"shop": source},
        "http": {"listen": "127.0.0.1:0"},
        "restart": {"max-attempts": 0},
        **sections,
    }
    path = folder / "f.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def run(path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "run", "-c", str(path), "--until-latest"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "CANARY": CANARY, **environ},
    )


def test_a_wrong_configuration_is_two_before_anything_starts(tmp_path: Path) -> None:
    done = run(config(tmp_path, pipeline={"trigger": "soon"}))
    assert done.returncode == 2
    assert "pipeline.trigger" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "lake").exists()


def test_an_address_that_is_taken_is_two(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(config(tmp_path, http={"listen": address}))
    assert done.returncode == 2
    assert f"http.listen: cannot listen on {address}" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_java_it_ends_with_two_and_says_what_is_missing(tmp_path: Path) -> None:
    done = run(config(tmp_path), PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 2, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (failed,) = [event for event in events if event["event"] == "pipeline_failed"]
    assert "Java" in failed["message"]


@pytest.mark.integration
def test_a_broker_that_is_not_there_is_three_and_no_output_shows_a_secret(
    tmp_path: Path,
) -> None:
    done = run(config(tmp_path, logging={"format": "json", "level": "DEBUG"}))
    assert done.returncode == 3, done.stdout[-3000:] + done.stderr[-3000:]
    assert CANARY not in done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert "pipeline_failed" in [event["event"] for event in events]
    written = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
    assert [str(one) for one in written if CANARY.encode() in one.read_bytes()] == []


@pytest.mark.integration
def test_a_signal_while_it_starts_ends_it_with_zero(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "-c", str(config(tmp_path))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "CANARY": CANARY},
    )
    assert process.stdout is not None
    assert any("daemon_started" in line for line in process.stdout)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0

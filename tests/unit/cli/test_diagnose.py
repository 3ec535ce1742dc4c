"""The archive of `ingestd diagnose` has what is asked for first, and no secret."""

import base64
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ingestd.daemon.http_access import HttpAccess
from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put
from tests.support.planted import Planted

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def planted() -> Planted:
    return Planted()


@pytest.fixture
def daemon(tmp_path: Path, planted: Planted) -> Iterator[HttpServer]:
    """The pages of a daemon whose error repeats a secret, as its own process would not."""
    token = tmp_path / "token"
    token.write_text(planted.secret("token"))
    status = Status("shop", "1", ["s"])
    status.failed(SourceError(f"refused {planted.secret('password')}"))
    server = HttpServer("127.0.0.1:0", status, HttpAccess(auth_file=str(token)))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def config(tmp_path: Path, planted: Planted, daemon: HttpServer) -> Path:
    options = {"bucket": "1", "their.secret.key": planted.secret("option")}
    table = native_table(tmp_path / "lake", [("k", "INT")], keys=["k"], options=options)
    put(table, [{"k": 1}])
    kafka = {
        "bootstrap.servers": "127.0.0.1:1",
        "sasl.password": planted.by_place["password"],
        "ssl.key.password": planted.file(tmp_path, "key-password"),
    }
    registry = {
        "url": "http://127.0.0.1:1",
        "basic-auth-user-info": f"me:{planted.secret('registry')}",
    }
    key = base64.b64encode(planted.secret("signing-secret").encode()).decode()
    (tmp_path / "sign").write_text(f"whsec_{key}\n")
    document = {
        "pipeline": {"name": "shop"},
        "warehouse": {"path": str(tmp_path / "lake"), "database": "db"},
        "sources": {"s": {"kafka": kafka, "topics": ["t"], "format": "debezium-avro",
                          "schema-registry": registry}},
        "http": {"listen": daemon.address, "auth-file": str(tmp_path / "token")},
        "notices": {"url": "http://127.0.0.1:1", "signing-secret": "${file:sign}"},
    }  # fmt: skip
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def contents(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as files:
        found = {}
        for member in files.getmembers():
            file = files.extractfile(member)
            assert file is not None
            found[member.name.removeprefix("ingestd-diagnose/")] = file.read().decode()
        return found


def test_it_has_everything_and_no_secret(
    config: Path, planted: Planted, tmp_path: Path, capsys: Capture
) -> None:
    log, archive = tmp_path / "d.log", tmp_path / "x.tar.gz"
    lines = [f"line {n} {planted.by_place['registry']}\n" for n in range(3_000)]
    log.write_text("".join(lines))
    done = run_command(capsys, "diagnose", "-c", config, "-o", archive, "--log", log)
    assert done.code == 0, done.err
    assert archive.stat().st_mode & 0o777 == 0o600
    found = contents(archive)
    assert planted.search({**found, "out": done.out, "err": done.err}.items()) == {}
    assert json.loads(found["status.txt"])["pipeline"] == "shop"
    assert "ingestd_build_info" in found["metrics.txt"]
    assert "sources.s.kafka.sasl.password = ******" in found["configuration.txt"]
    assert json.loads(found["versions.json"])["libraries"]["pyarrow"]
    assert json.loads(found["machine.json"])["cpus"]
    (table,) = json.loads(found["tables.json"])["tables"].values()
    assert (table["snapshots"][0]["id"], table["levels"][0]["rows"]) == (1, 1)
    assert table["schema"]["options"]["their.secret.key"] == "******"
    assert found["log.txt"].count("\n") == 2_000
    assert "line 2999 " in found["log.txt"]
    again = run_command(capsys, "diagnose", "-c", config, "-o", archive)
    assert (again.code, "name another file by --output" in again.err) == (2, True)


def test_what_cannot_be_read_says_why(config: Path, tmp_path: Path, capsys: Capture) -> None:
    archive, broken = tmp_path / "x.tar.gz", tmp_path / "y.tar.gz"
    text = config.read_text().replace("/lake", "/elsewhere")
    config.write_text(text)
    done = run_command(
        capsys, "diagnose", "-c", config, "-o", archive, "--url", "127.0.0.1:1", "--log", "/nothing"
    )
    assert done.code == 0
    found = contents(archive)
    for part in ("status.txt", "metrics.txt", "tables.json", "log.txt"):
        assert found[part].startswith("cannot be read: "), part
    config.write_text(text.replace("sources:", "sauces:"))
    done = run_command(capsys, "diagnose", "-c", config, "-o", broken, "--json")
    assert json.loads(done.out) == {"archive": str(broken)}
    assert "sauces" in contents(broken)["configuration.txt"]


def test_a_port_chosen_at_the_start_and_missing_scratch_folders_are_no_obstacle(
    config: Path, tmp_path: Path, capsys: Capture
) -> None:
    document = yaml.safe_load(config.read_text())
    document["http"]["listen"] = "127.0.0.1:0"
    document["spark"] = {"spark.local.dir": f"/nothing/a,{tmp_path}"}
    config.write_text(yaml.safe_dump(document))
    archive, refused = tmp_path / "x.tar.gz", tmp_path / "y.tar.gz"
    done = run_command(capsys, "diagnose", "-c", config, "-o", archive)
    assert done.code == 0, done.err
    found = contents(archive)
    assert found["status.txt"].startswith("cannot be read: 'http://127.0.0.1:0' is not the address")
    scratch = json.loads(found["machine.json"])["scratch"]
    assert "No such file" in scratch["/nothing/a"]
    assert scratch[str(tmp_path)] > 0
    done = run_command(capsys, "diagnose", "-c", config, "-o", refused, "--url", "ftp://h:1")
    assert (done.code, refused.exists()) == (2, False)

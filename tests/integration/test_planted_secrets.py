"""Secrets planted wherever a configuration may have them are nowhere else while it runs."""

import hmac
import json
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from ingestd.dev.broker import DevBroker
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.daemon import Daemon, ingestd, run_daemon
from tests.support.kafka_broker import fresh_topic, produce
from tests.support.otlp_receiver import OtlpReceiver
from tests.support.planted import Planted, files_below, processes
from tests.support.rest_server import RestServer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture
def planted() -> Planted:
    return Planted()


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
def catalog(tmp_path: Path, planted: Planted) -> Iterator[RestServer]:
    class Guarded(RestServer):
        token = planted.secret("catalog-token")

    with Guarded(tmp_path / "warehouse") as server:
        yield server


def configuration(
    folder: Path, broker: DevBroker, topic: str, catalog: RestServer, planted: Planted
) -> dict[str, Any]:
    """Secrets in files, and some in the configuration itself, which is warned of."""
    secrets = folder / "secrets"
    (secrets / "page-token").parent.mkdir(exist_ok=True)
    (secrets / "page-token").write_text(planted.secret("page-token"))
    kafka = {
        "bootstrap.servers": broker.bootstrap,
        "sasl.password": planted.file(secrets, "kafka-password"),
        "ssl.key.password": planted.secret("kafka-key-password"),
    }
    basic = {"basic-auth-user-info": f"me:{planted.secret('registry-basic')}"}
    broker.create_topic(other_of(topic))
    bearer = {"bearer-auth-token": planted.file(secrets, "registry-bearer")}
    return {
        "pipeline": {"name": "shop", "trigger": "100ms"},
        "warehouse": {
            "path": str(folder / "warehouse"),
            "database": "ods",
            "catalog": {
                "metastore": "rest",
                "uri": catalog.uri,
                "warehouse": catalog.warehouse,
                "token": catalog.token,
            },
        },
        "sources": {
            "shop": {
                "kafka": kafka,
                "topics": [topic],
                "format": "debezium-json",
                "schema-registry": {"url": "http://127.0.0.1:1", **basic},
            },
            "other": {
                "kafka": kafka,
                "topics": [other_of(topic)],
                "format": "json",
                "schema-registry": {"url": "http://127.0.0.1:1", **bearer},
            },
        },
        "tables": {"orders": {"computed-columns": {"hashed": hashed(secrets, planted)}}},
        "routing": {"merge-shards": True, "table-mapping": {other_of(topic): "plain"}},
        "logging": {"level": "DEBUG"},
        "spark": {"spark.hadoop.fs.s3a.secret.key": planted.secret("spark-secret")},
        "http": {"auth-file": str(secrets / "page-token")},
    }


def hashed(secrets: Path, planted: Planted) -> str:
    """An expression with a key that tasks look up in a file."""
    reference = planted.file(secrets, "hmac-key").removeprefix("${").removesuffix("}")
    return f"hmac(v, '{reference}')"


def other_of(topic: str) -> str:
    """The topic of the second source."""
    return f"{topic}-other"


def page(daemon: Daemon, path: str, token: str) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{daemon.port}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def test_no_secret_is_in_anything_that_commands_and_the_daemon_show_or_leave(
    tmp_path: Path,
    broker: DevBroker,
    catalog: RestServer,
    collector: OtlpReceiver,
    planted: Planted,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = fresh_topic(broker)
    rows = [(key(id=n), event("c", {"id": n, "v": "x"})) for n in range(50)]
    produce(broker, topic, [*rows, (key(id=1), b"{bad")])
    config = configuration(tmp_path, broker, topic, catalog, planted)
    produce(broker, other_of(topic), rows)
    check_command_line(tmp_path / "shop.yaml", config, planted, capsys)
    config["telemetry"] = {
        "traces": "otlp",
        "endpoint": collector.endpoint.replace("//", f"//me:{planted.secret('collector')}@"),
    }
    secrets = dict(planted.by_place)
    # Where the secret is given is left out; everything else is searched.
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-api-key={planted.secret('collector-key')}"}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment["TMPDIR"] = str(temporary)
    own = [tmp_path / "secrets", tmp_path / "shop.yaml", tmp_path / "ingestd.yaml"]
    with run_daemon(config, tmp_path, environment=environment) as daemon:
        token = secrets["page-token"]
        daemon.wait_until(lambda: daemon.get("/readyz")[0] == 200)
        daemon.wait_until(
            lambda: json.loads(page(daemon, "/status", token))["batch"]["finished"] is not None
        )
        paths = ("/status", "/metrics", "/")
        shown = planted.search((path, page(daemon, path, token)) for path in paths)
        archive = tmp_path / "diagnose.tar.gz"
        asked = ("--url", f"http://127.0.0.1:{daemon.port}", "--log", daemon.log, "-o", archive)
        assert run_command(capsys, "diagnose", "-c", tmp_path / "ingestd.yaml", *asked).code == 0
        collector.wait_for(bool)
        running = planted.search(processes(daemon.family()))
        left_while_running = planted.search(files_below(tmp_path, leaving_out=own))
        daemon.terminate()
        assert daemon.wait() == 0
    assert "secret_in_plain_text" in daemon.log.read_text()
    with tarfile.open(archive) as parts:
        contents = {part.name: parts.extractfile(part) for part in parts.getmembers()}
        texts = {name: file.read() for name, file in contents.items() if file is not None}
    assert b"hmac(v, 'file:" in texts["ingestd-diagnose/configuration.txt"]
    assert planted.search(texts.items()) == {}
    rows_file = next((tmp_path / "warehouse").rglob("orders/bucket-*/*.parquet"))
    digest = hmac.digest(secrets["hmac-key"].encode(), b"x", "sha256").hex()
    assert set(pq.read_table(rows_file).column("hashed").to_pylist()) == {digest}
    told = [str(span) for span in (*collector.spans, *collector.resources)]
    assert planted.search({"traces": "\n".join(told)}.items()) == {}
    assert planted.found_in(json.dumps(collector.headers)) == ["collector", "collector-key"]
    # What is searched for can be found: where it was put, but for the page's token, in its file.
    hidden = planted.search(files_below(tmp_path)).values()
    assert {place for places in hidden for place in places} == secrets.keys()
    assert (shown, left_while_running) == ({}, {})
    assert {place for places in running.values() for place in places} == {"collector-key"}
    assert {name.partition("/")[2] for name in running} == {"environ"}
    assert planted.search(files_below(tmp_path, leaving_out=own)) == {}


def check_command_line(
    file: Path, config: dict[str, Any], planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    """No secret is in what the command line says of a configuration."""
    file.write_text(yaml.safe_dump({**config, "http": {}}))
    checked = run_command(capsys, "validate", "-c", file)
    as_json = run_command(capsys, "validate", "-c", file, "--json")
    # What libraries print is in the output of a process only.
    online = ingestd("--debug", "validate", "-c", file, "--online")
    plan = ingestd("plan", "-c", file, "--json")
    assert checked.code == online.returncode == 0
    assert "******" in checked.out
    outputs = {
        "validate": checked.out + checked.err,
        "validate --json": as_json.out + as_json.err,
        "validate --online": online.stdout + online.stderr,
        "plan": plan.stdout + plan.stderr,
    }
    assert planted.search(outputs.items()) == {}

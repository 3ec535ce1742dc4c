"""What the chart's page shows is what helm takes."""

from pathlib import Path

import yaml

from ingestd.cli.main import load_command
from tests.support.chart import objects, only
from tests.support.code_blocks import shown

COMPARISON = "docs/compare.md"
DEPLOYMENT = "docs/deployment.md"
PAGE = "helm/ingestd/README.md"


def test_the_values_that_the_page_shows_are_installed(tmp_path: Path) -> None:
    """Rendered, not installed: there is no cluster here."""
    command = shown(PAGE, "helm install").text.split()
    assert command[:4] == ["helm", "install", "shop", "helm/ingestd"]
    assert command[-2:] == ["--values", "shop.yaml"]
    file = tmp_path / "shop.yaml"
    file.write_text(shown(PAGE, "config:").text)
    found = objects("--values", file)
    settings = only(found, "ConfigMap")["data"]["ingestd.yaml"]
    assert "kafka:9092" in settings
    assert "${file:/run/secrets/ingestd/kafka-password}" in settings


def test_the_executors_that_the_page_shows_are_created(tmp_path: Path) -> None:
    file = tmp_path / "executors.yaml"
    file.write_text(shown(DEPLOYMENT, "executors:").text)
    found = objects("--values", file)
    spark = yaml.safe_load(only(found, "ConfigMap")["data"]["ingestd.yaml"])["spark"]
    assert (spark["spark.executor.instances"], spark["spark.executor.cores"]) == ("4", "2")
    assert only(found, "Role")


def test_the_comparison_that_the_page_shows_is_scheduled(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(shown(COMPARISON, "jobs:").text)
    secret = ("--set", "extraEnvFrom[0].secretRef.name=database")
    config = tmp_path / "shop.yaml"
    config.write_text(shown(PAGE, "config:").text)
    job = only(objects("--values", config, "--values", file, *secret), "CronJob")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    command, *arguments = container["args"]
    load_command(command).make_context(command, list(arguments))
    assert {"secretRef": {"name": "database"}} in container["envFrom"]
    assert "/etc/ingestd" in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert (job["spec"]["jobTemplate"]["spec"]["backoffLimit"], pod["restartPolicy"]) == (
        1,
        "Never",
    )

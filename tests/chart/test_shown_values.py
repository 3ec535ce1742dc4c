"""What the chart's page shows is what helm takes."""

from pathlib import Path

import yaml

from tests.support.chart import objects, only
from tests.support.code_blocks import shown

OPERATIONS = "docs/operations.md"
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
    file.write_text(shown(OPERATIONS, "executors:").text)
    found = objects("--values", file)
    spark = yaml.safe_load(only(found, "ConfigMap")["data"]["ingestd.yaml"])["spark"]
    assert (spark["spark.executor.instances"], spark["spark.executor.cores"]) == ("4", "2")
    assert only(found, "Role")

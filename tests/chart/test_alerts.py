"""Alerts and dashboard: they parse, name metrics that exist, and fire when they should."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

import ingestd.lag_metrics as lag_metrics
import ingestd.metrics as metrics
from tests.support.chart import CHART, ROOT, metric_names, objects, only, promtool

CASES = Path(__file__).with_name("alert_cases.yaml")
assert metrics.STATES and lag_metrics.FRESHNESS  # importing the modules registers their collectors


def rules(*values: str) -> list[dict[str, Any]]:
    given = [argument for value in values for argument in ("--set", value)]
    found = objects("--values", CHART / "ci" / "monitoring-values.yaml", *given)
    groups: list[dict[str, Any]] = only(found, "PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def exported() -> set[str]:
    suffixes = {
        "counter": ("_total",),
        "gauge": ("",),
        "histogram": ("_bucket", "_sum", "_count"),
    }
    return {
        family.name + suffix
        for family in REGISTRY.collect()
        for suffix in suffixes.get(family.type, ())
    }


def test_alerts_name_metrics_that_exist() -> None:
    for alert, names in metric_names({rule["alert"]: rule["expr"] for rule in rules()}).items():
        assert names, alert
        assert names <= exported(), alert


def test_each_alert_says_what_and_links_to_a_runbook_that_is_there() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    anchors = {
        re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    }
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
        url, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert url.startswith("https://"), rule["alert"]
        assert (url.endswith("/docs/alerts.md"), anchor in anchors) == (True, True), rule["alert"]


def test_without_the_url_of_runbooks_alerts_have_no_link() -> None:
    assert not [rule for rule in rules("prometheusRule.runbookUrl=") if "runbook_url" in str(rule)]
    mine = rules("prometheusRule.runbookUrl=http://wiki/runbooks")
    assert {one["annotations"]["runbook_url"].partition("#")[0] for one in mine} == {
        "http://wiki/runbooks"
    }


def test_the_dashboard_parses_and_names_metrics_that_exist() -> None:
    found = objects("--values", CHART / "ci" / "monitoring-values.yaml")
    dashboard = json.loads(
        only(found, "ConfigMap", "shop-ingestd-dashboard")["data"]["ingestd.json"]
    )
    queries = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    }
    assert len(queries) >= 16
    for title, names in metric_names(queries).items():
        assert names, title
        assert names <= exported(), title


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    cases = yaml.safe_load(CASES.read_text())["tests"]
    expected = [one for case in cases for one in case["alert_rule_test"]]
    fires = {one["alertname"] for one in expected if one.get("exp_alerts")}
    rests = {one["alertname"] for one in expected if not one.get("exp_alerts")}
    assert fires == rests == {rule["alert"] for rule in rules()}


def test_alerts_fire_when_their_cause_is_there_and_rest_when_it_is_not(tmp_path: Path) -> None:
    program = promtool()
    if program is None:
        pytest.skip("promtool is neither on the PATH nor to be had from Debian's packages")
    found = objects("--values", CHART / "ci" / "monitoring-values.yaml")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(only(found, "PrometheusRule")["spec"]))
    (tmp_path / "cases.yaml").write_text(CASES.read_text())
    done = subprocess.run(
        [str(program), "test", "rules", "cases.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""What the chart's network policy lets in and out."""

import json
from pathlib import Path
from typing import Any

import yaml

from ingestd.config.load import load_config
from tests.support.chart import CHART, objects, only

SMALLEST = ("--values", CHART / "ci" / "smallest-values.yaml")
EXECUTORS = ("--set", "executors.instances=2,config.warehouse.path=s3://lake/tables")
PEER = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
BROKERS = {"ports": [{"port": 9092}], "to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}
DNS = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def rendered(*more: str, release: str = "shop", name: str = "shop-ingestd") -> list[dict[str, Any]]:
    found = objects(*SMALLEST, *more, release=release)
    policies = [one for one in found if one["kind"] == "NetworkPolicy"]
    return [policy for policy in policies if policy["metadata"]["name"] == name]


def test_only_named_peers_reach_the_pages_and_the_pod_reaches_only_what_is_named() -> None:
    wanted = [
        *("--set-json", f"networkPolicy.from={json.dumps([PEER])}"),
        *("--set-json", f"networkPolicy.egress={json.dumps([BROKERS])}"),
    ]
    [policy] = rendered(*wanted)
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    named, tests = policy["spec"]["ingress"]
    assert named == {"from": [PEER], "ports": [{"port": "http"}]}
    assert tests["ports"] == named["ports"]
    assert policy["spec"]["egress"] == [DNS, BROKERS]
    [daemon] = [
        object_ for object_ in objects(*SMALLEST, *wanted) if object_["kind"] == "StatefulSet"
    ]
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert not selected(tests["from"]).items() <= labels.items()


def selected(peers: list[dict[str, Any]]) -> dict[str, str]:
    [peer] = peers
    labels: dict[str, str] = peer["podSelector"]["matchLabels"]
    return labels


def test_the_pod_of_helm_test_comes_in_where_it_is_no_named_peer() -> None:
    wanted = (*("--set-json", f"networkPolicy.from={json.dumps([PEER])}"),)
    [policy] = rendered(*wanted)
    [pod] = [object_ for object_ in objects(*SMALLEST, *wanted) if object_["kind"] == "Pod"]
    assert (
        selected(policy["spec"]["ingress"][1]["from"]).items() <= pod["metadata"]["labels"].items()
    )
    [policy] = rendered(*wanted, "--set", "tests.enabled=false")
    assert policy["spec"]["ingress"] == [{"from": [PEER], "ports": [{"port": "http"}]}]


def test_executors_and_their_driver_reach_each_other_where_there_are_any(tmp_path: Path) -> None:
    """The labels of the policy are those that Spark gives the executors of the release."""
    egress = ("--set-json", f"networkPolicy.egress={json.dumps([BROKERS])}")
    [policy] = rendered(*EXECUTORS, *egress)
    [_, called] = policy["spec"]["ingress"]
    [_, calls, _] = policy["spec"]["egress"]
    wanted = selected(called["from"])
    assert selected(calls["to"]) == wanted
    assert wanted["app.kubernetes.io/instance"] == "shop"
    mounted = objects(*SMALLEST, *EXECUTORS)
    files = only(mounted, "ConfigMap")["data"]
    assert wanted.items() <= yaml.safe_load(files["executor.yaml"])["metadata"]["labels"].items()
    file = tmp_path / "ingestd.yaml"
    file.write_text(files["ingestd.yaml"])
    spark = load_config(file).config.spark
    container = only(mounted, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert [ports[port["port"]] for port in called["ports"]] == [
        int(spark["spark.driver.port"]),
        int(spark["spark.driver.blockManager.port"]),
    ]
    assert calls["ports"] == [{"port": int(spark["spark.blockManager.port"])}]


def test_executors_serve_blocks_to_their_driver_and_to_each_other_only() -> None:
    [driver] = rendered(*EXECUTORS)
    [policy] = rendered(*EXECUTORS, name="shop-ingestd-executors")
    executors = selected(driver["spec"]["ingress"][1]["from"])
    assert policy["spec"]["podSelector"]["matchLabels"] == executors
    blocks, files = policy["spec"]["ingress"]
    peers = [peer["podSelector"]["matchLabels"] for peer in blocks["from"]]
    assert peers == [driver["spec"]["podSelector"]["matchLabels"], executors]
    assert blocks["ports"] == [{"port": 7080}]
    assert selected(files["from"]) == executors
    assert files["ports"] == [{"port": 7081}]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert rendered(name="shop-ingestd-executors") == []


def test_executors_reach_each_other_their_driver_and_what_the_pod_reaches() -> None:
    egress = ("--set-json", f"networkPolicy.egress={json.dumps([BROKERS])}")
    [driver] = rendered(*EXECUTORS, *egress)
    [policy] = rendered(*EXECUTORS, *egress, name="shop-ingestd-executors")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    dns, to_driver, to_executors, brokers = policy["spec"]["egress"]
    assert [dns, brokers] == [DNS, BROKERS]
    assert selected(to_driver["to"]) == driver["spec"]["podSelector"]["matchLabels"]
    assert to_driver["ports"] == driver["spec"]["ingress"][1]["ports"]
    assert selected(to_executors["to"]) == policy["spec"]["podSelector"]["matchLabels"]
    blocks, files = policy["spec"]["ingress"]
    assert to_executors["ports"] == [*blocks["ports"], *files["ports"]]


def test_executors_of_another_release_are_not_let_in() -> None:
    [shop] = rendered(*EXECUTORS)
    [bank] = rendered(*EXECUTORS, release="bank", name="bank-ingestd")
    assert selected(shop["spec"]["ingress"][1]["from"]) != selected(
        bank["spec"]["ingress"][1]["from"]
    )


def test_by_default_the_pages_are_open_and_no_other_port_is_and_everything_can_be_reached() -> None:
    [policy] = rendered()
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "http"}]}]
    assert "egress" not in policy["spec"]


def test_there_is_none_if_that_is_wanted() -> None:
    assert rendered("--set", "networkPolicy.enabled=false") == []

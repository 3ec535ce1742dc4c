"""What the chart's network policy lets in and out."""

import json
from typing import Any

from tests.support.chart import CHART, objects

SMALLEST = ("--values", CHART / "ci" / "smallest-values.yaml")
PEER = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
BROKERS = {"ports": [{"port": 9092}], "to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}
DNS = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def rendered(*more: str) -> list[dict[str, Any]]:
    found = objects(*SMALLEST, *more)
    return [one for one in found if one["kind"] == "NetworkPolicy"]


def test_only_named_peers_reach_the_pages_and_the_pod_reaches_only_what_is_named() -> None:
    wanted = [
        *("--set", "networkPolicy.enabled=true"),
        *("--set-json", f"networkPolicy.from={json.dumps([PEER])}"),
        *("--set-json", f"networkPolicy.egress={json.dumps([BROKERS])}"),
    ]
    [policy] = rendered(*wanted)
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    named, tests = policy["spec"]["ingress"]
    assert named == {"from": [PEER], "ports": [{"port": "http"}]}
    assert tests["ports"] == named["ports"]
    assert policy["spec"]["egress"] == [DNS, BROKERS]
    [daemon] = [one for one in objects(*SMALLEST, *wanted) if one["kind"] == "StatefulSet"]
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert not selected(tests["from"]).items() <= labels.items()


def selected(peers: list[dict[str, Any]]) -> dict[str, str]:
    [peer] = peers
    labels: dict[str, str] = peer["podSelector"]["matchLabels"]
    return labels


def test_the_pod_of_helm_test_comes_in_where_it_is_no_named_peer() -> None:
    wanted = (
        *("--set", "networkPolicy.enabled=true"),
        *("--set-json", f"networkPolicy.from={json.dumps([PEER])}"),
    )
    [policy] = rendered(*wanted)
    [pod] = [one for one in objects(*SMALLEST, *wanted) if one["kind"] == "Pod"]
    assert (
        selected(policy["spec"]["ingress"][1]["from"]).items() <= pod["metadata"]["labels"].items()
    )
    [policy] = rendered(*wanted, "--set", "tests.enabled=false")
    assert policy["spec"]["ingress"] == [{"from": [PEER], "ports": [{"port": "http"}]}]


def test_executors_and_their_driver_reach_each_other_where_there_are_any() -> None:
    [policy] = rendered("--set", "networkPolicy.enabled=true", "--set", "rbac.create=true")
    executors = {"spark-role": "executor"}
    [_, called] = policy["spec"]["ingress"]
    assert (selected(called["from"]), "ports" in called) == (executors, False)
    [_, calls] = policy["spec"]["egress"]
    assert (selected(calls["to"]), "ports" in calls) == (executors, False)


def test_without_peers_only_the_namespace_comes_in_and_nothing_but_names_goes_out() -> None:
    [policy] = rendered("--set", "networkPolicy.enabled=true")
    assert policy["spec"]["ingress"] == [
        {"from": [{"podSelector": {}}], "ports": [{"port": "http"}]}
    ]
    assert policy["spec"]["egress"] == [DNS]


def test_there_is_none_unless_it_is_asked_for() -> None:
    assert rendered() == []

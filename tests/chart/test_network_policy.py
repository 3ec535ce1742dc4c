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
    assert policy["spec"]["ingress"] == [{"from": [PEER], "ports": [{"port": "http"}]}]
    assert policy["spec"]["egress"] == [DNS, BROKERS]
    [daemon] = [one for one in objects(*SMALLEST, *wanted) if one["kind"] == "StatefulSet"]
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_without_peers_only_the_namespace_comes_in_and_nothing_but_names_goes_out() -> None:
    [policy] = rendered("--set", "networkPolicy.enabled=true")
    assert policy["spec"]["ingress"] == [
        {"from": [{"podSelector": {}}], "ports": [{"port": "http"}]}
    ]
    assert policy["spec"]["egress"] == [DNS]


def test_there_is_none_unless_it_is_asked_for() -> None:
    assert rendered() == []

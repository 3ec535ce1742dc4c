"""The chart on a real API server: every object is admitted, and pods by the restricted standard."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.api_server import ApiServer, can_be_had, operator_kinds
from tests.support.chart import VALUE_SETS, objects

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(3600)]
RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}
FORBIDDEN = 403


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With the kinds of the Prometheus operator, and the priority that some values name."""
    if not can_be_had():
        pytest.skip("no API server in the cache, and no Go to build it")
    with ApiServer(tmp_path_factory.mktemp("cluster")) as running:
        for kind in operator_kinds():
            assert running.apply(kind, "").code in {200, 201}
        for kind in operator_kinds():
            path = f"/apis/monitoring.coreos.com/v1/{kind['spec']['names']['plural']}"
            wait_for(running, path)
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
        assert running.apply({**priority, "metadata": {"name": "high"}}, "").code in {200, 201}
        yield running


def wait_for(server: ApiServer, path: str) -> None:
    end = time.monotonic() + 60
    while server.ask("GET", path).code != 200:
        assert time.monotonic() < end, path
        time.sleep(0.2)


def namespace(server: ApiServer, name: str) -> None:
    one = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    one["metadata"]["labels"] = RESTRICTED  # type: ignore[index]  # it is a dictionary
    assert server.apply(one, "").code in {200, 201}


def pods(one: dict[str, Any]) -> list[dict[str, Any]]:
    """The pods that controllers would make of an object."""
    templates = {
        "StatefulSet": ("spec", "template"),
        "CronJob": ("spec", "jobTemplate", "spec", "template"),
    }
    if "executor.yaml" in one.get("data", {}):
        return [executor(yaml.safe_load(one["data"]["executor.yaml"]))]
    found: Any = one
    for part in templates.get(one["kind"], ()):
        found = found[part]
    if one["kind"] not in templates:
        return []
    name = f"{one['metadata']['name']}-0"
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": found["spec"]}]


def executor(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod as Spark makes it of its template, apart from what only a run has."""
    pod["metadata"]["name"] = "shop-exec-1"
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    for part in ("requests", "limits"):
        resources.setdefault(part, {})["memory"] = "1536Mi"
    pod["spec"]["containers"][0] |= {"args": ["executor"], "ports": [{"containerPort": 7080}]}
    pod["spec"]["restartPolicy"] = "Never"
    return pod


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.stem)
def test_all_objects_are_admitted_and_so_are_their_pods(server: ApiServer, values: Path) -> None:
    name = values.stem.removesuffix("-values")
    namespace(server, name)
    found = objects("--values", values, "--set", "prometheusRule.enabled=true")
    assert found
    for one in found:
        one["metadata"].pop("namespace", None)
        for made in (one, *pods(one)):
            answer = server.apply(made, name)
            where = f"{made['kind']} {made['metadata']['name']}"
            assert answer.code in {200, 201}, f"{where}: {answer.document.get('message')}"
            assert answer.warnings == [], where


def test_a_pod_with_more_rights_is_refused_there(server: ApiServer) -> None:
    namespace(server, "refused")
    found = objects("--values", VALUE_SETS[0], "--set", "podSecurityContext.runAsNonRoot=false")
    (pod,) = [pod for one in found if one["kind"] == "StatefulSet" for pod in pods(one)]
    answer = server.apply(pod, "refused")
    assert answer.code == FORBIDDEN
    assert "runAsNonRoot" in answer.document["message"]


def test_an_unknown_field_is_refused_there(server: ApiServer) -> None:
    namespace(server, "strict")
    found = objects("--values", VALUE_SETS[0])
    (one,) = [one for one in found if one["kind"] == "StatefulSet"]
    one["metadata"].pop("namespace")
    one["spec"]["replica"] = 1
    assert server.apply(one, "strict").code >= 400


def test_applying_again_changes_nothing(server: ApiServer) -> None:
    namespace(server, "again")
    for object_ in objects("--values", VALUE_SETS[0]):
        object_["metadata"].pop("namespace", None)
        first = server.apply(object_, "again").document
        second = server.apply(object_, "again").document
        for answer in (first, second):
            del answer["metadata"]["managedFields"], answer["metadata"]["resourceVersion"]
        assert first == second, object_["kind"]

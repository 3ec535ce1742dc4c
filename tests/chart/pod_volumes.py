"""Volumes and variables of pods, with what the API server has for them."""

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.chart.api_server import ApiServer
from tests.chart.container import Mount


class MissingObjectError(Exception):
    """A pod refers to an object that does not exist (yet)."""


def volume_folder(api: ApiServer, pod: Mapping[str, Any], volume: dict[str, Any], at: Path) -> Path:
    """The folder of a volume on this machine; files are written into `at`."""
    namespace = pod["metadata"]["namespace"]
    if "persistentVolumeClaim" in volume:
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = _get(api, f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        bound = _get(api, f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
        return Path(bound["spec"]["hostPath"]["path"])
    at.mkdir(parents=True, exist_ok=True)
    sources = volume["projected"]["sources"] if "projected" in volume else [volume]
    for source in sources:
        for name, content in _files(api, pod, source):
            (at / name).write_bytes(content)
    return at


def mounts_of(container: Mapping[str, Any], folders: Mapping[str, Path]) -> list[Mount]:
    """The places of volumes in a container."""
    found = []
    for mount in container.get("volumeMounts", []):
        assert "subPath" not in mount
        source = folders[mount["name"]]
        found.append(Mount(source, mount["mountPath"], mount.get("readOnly", False)))
    return found


def variables_of(
    api: ApiServer, pod: Mapping[str, Any], container: Mapping[str, Any]
) -> dict[str, str]:
    """The variables of a container."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        kind = "secret" if "secretRef" in source else "configMap"
        found |= {
            name: content.decode()
            for name, content in _data(api, pod, kind, source[f"{kind}Ref"]["name"]).items()
        }
    for variable in container.get("env", []):
        found[variable["name"]] = _value(api, pod, variable)
    return found


def _value(api: ApiServer, pod: Mapping[str, Any], variable: Mapping[str, Any]) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    ((kind, source),) = variable["valueFrom"].items()
    if kind == "fieldRef":
        return _field(pod, source["fieldPath"])
    return _data(api, pod, kind.removesuffix("KeyRef"), source["name"])[source["key"]].decode()


def _field(pod: Mapping[str, Any], path: str) -> str:
    found: Any = pod
    for part in path.split("."):
        found = found[part]
    return str(found)


def _files(
    api: ApiServer, pod: Mapping[str, Any], source: Mapping[str, Any]
) -> Iterator[tuple[str, bytes]]:
    kinds: Mapping[str, Callable[[Any], Iterator[tuple[str, bytes]]]] = {
        "emptyDir": lambda _: iter(()),
        "secret": lambda one: _chosen(
            one, _data(api, pod, "secret", one.get("secretName") or one["name"])
        ),
        "configMap": lambda one: _chosen(one, _data(api, pod, "configMap", one["name"])),
        "serviceAccountToken": lambda one: iter([(one["path"], _token(api, pod, one))]),
        "downwardAPI": lambda one: (
            (item["path"], _field(pod, item["fieldRef"]["fieldPath"]).encode())
            for item in one["items"]
        ),
    }
    (kind,) = source.keys() & kinds.keys()
    return kinds[kind](source[kind])


def _chosen(source: Mapping[str, Any], data: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    if "items" not in source:
        return iter(data.items())
    return ((item["path"], data[item["key"]]) for item in source["items"])


def _data(api: ApiServer, pod: Mapping[str, Any], kind: str, name: str) -> dict[str, bytes]:
    place = f"/api/v1/namespaces/{pod['metadata']['namespace']}/{kind.lower()}s/{name}"
    data = _get(api, place).get("data", {})
    if kind == "secret":
        return {key: base64.b64decode(text) for key, text in data.items()}
    return {key: text.encode() for key, text in data.items()}


def _token(api: ApiServer, pod: Mapping[str, Any], source: Mapping[str, Any]) -> bytes:
    """A token of the pod's account, which is worth something while the pod exists."""
    metadata = pod["metadata"]
    account = pod["spec"]["serviceAccountName"]
    owner = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    seconds = source.get("expirationSeconds", 3600)
    answer = api.ask(
        "POST",
        f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token",
        {"spec": {"expirationSeconds": seconds, "boundObjectRef": owner}},
    )
    assert answer.code == 201, answer.document
    return str(answer.document["status"]["token"]).encode()


def _get(api: ApiServer, path: str) -> dict[str, Any]:
    answer = api.ask("GET", path)
    if answer.code != 200:
        raise MissingObjectError(answer.document.get("message"))
    return answer.document

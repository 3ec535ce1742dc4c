"""A cluster of Kubernetes on this machine: its real control plane, and a kubelet of processes."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.chart.api_server import ApiServer
from tests.chart.connections import Connection, connections
from tests.chart.kubelet import Kubelet
from tests.chart.pod_processes import PodProcesses
from tests.support.chart import CHART, helm
from tests.support.closing import Closing

_ALONE = ("--leader-elect=false", "--secure-port=0")


class Cluster(Closing):
    """Runs while the block does, with one namespace for releases."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.namespace = namespace
        self._folder = folder
        folder.mkdir(parents=True)
        self.api = ApiServer(folder, accounts=True)
        self.kubelet = Kubelet(self.api, folder / "kubelet")
        self._open: set[Connection] = set()
        self.seen: set[Connection] = set()
        """Connections of pods, as far as they were open while the test waited."""

    def start(self) -> None:
        """All parts; return when pods of the namespace can be created."""
        self.api.start()
        signing = f"--service-account-private-key-file={self.api.key}"
        authority = f"--root-ca-file={self.api.certificate}"
        self.api.run("kube-controller-manager", *_ALONE, signing, authority)
        self.api.run("kube-scheduler", *_ALONE)
        self.kubelet.start()
        metadata = {"name": self.namespace, "labels": dict(_RESTRICTED)}
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        self.wait_until(lambda: self.api.ask("GET", account).code == 200)

    def close(self) -> None:
        """End all parts."""
        self.kubelet.close()
        self.api.close()

    def tell(self, error: BaseException) -> None:
        """The newest pods' logs, and the kubelet's own error."""
        error.add_note(self.kubelet.error or "the kubelet ran")
        for name, pod in self.kubelet.pods.items():
            text = pod.log().read_text(errors="replace") if pod.log().exists() else ""
            error.add_note(f"--- {name} ({pod.address})\n" + "\n".join(text.splitlines()[-40:]))

    def create(self, document: dict[str, Any]) -> None:
        """An object that the test brings."""
        answer = self.api.apply(document, self.namespace)
        assert answer.code in {200, 201}, answer.document

    def upgrade(self, release: str, values: Mapping[str, Any]) -> None:
        """`helm upgrade --install`."""
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values)))
        place = ("--namespace", self.namespace, "--kubeconfig", str(self.api.kubeconfig()))
        done = helm("upgrade", "--install", release, CHART, *place, "--values", file)
        assert done.returncode == 0, done.stderr

    def delete_pod(self, name: str, *, grace_seconds: int = 0) -> None:
        """As `kubectl delete pod`, with --force unless there is time."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        assert self.api.ask("DELETE", path, {"gracePeriodSeconds": grace_seconds}).code == 200

    def executors(self) -> dict[str, PodProcesses]:
        """The pods of executors that run."""
        return {
            name: pod
            for name, pod in self.kubelet.pods.items()
            if pod.pod["metadata"]["labels"].get("app.kubernetes.io/component") == "executor"
            and pod.pids()
        }

    def policies(self) -> list[dict[str, Any]]:
        """The network policies of the namespace."""
        path = f"/apis/networking.k8s.io/v1/namespaces/{self.namespace}/networkpolicies"
        found: list[dict[str, Any]] = self.api.ask("GET", path).document["items"]
        return found

    def wait_until(self, condition: Callable[[], bool], seconds: float = 240) -> None:
        """Return when the condition holds; notes the connections that are open meanwhile."""
        end = time.monotonic() + seconds
        while not condition():
            before, self._open = self._open, connections(self.kubelet.pods)
            self.seen |= before & self._open  # twice, since processes come and go meanwhile
            assert self.kubelet.error is None, self.kubelet.error
            assert time.monotonic() < end, f"not so after {seconds} s"
            time.sleep(0.2)


_RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}

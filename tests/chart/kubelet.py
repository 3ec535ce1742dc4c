"""A kubelet of processes: the node on which the scheduler places pods, whose containers it runs.

Each pod has an address of its own in 127.0.0.0/8. Names of services are found in a file of hosts
that is replaced whenever pods come and go: of headless services their pods, as DNS has them.
"""

import threading
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chart.api_server import ApiServer
from tests.chart.connections import POD_NETWORK
from tests.chart.pod_processes import PodProcesses
from tests.support.closing import Closing

_NODE = "node"
_PAUSE_SECONDS = 0.1
_LEASE_SECONDS = 10.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}


class Kubelet(Closing):
    """Runs the pods of its node while the block does; `pods` are those that are there, by name."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._by_uid: dict[str, PodProcesses] = {}
        self._numbers = iter(range(1, 250 * 250))
        self._network = folder / "network"
        self._renewed = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self.error: str | None = None
        """The traceback of what ended it too early."""

    def start(self) -> None:
        """Register the node, and begin."""
        self._network.mkdir(parents=True)
        metadata = {"name": _NODE, "labels": {"kubernetes.io/hostname": _NODE}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        assert self._api.ask("POST", "/api/v1/nodes", node).code == 201
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        ready |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {"capacity": _CAPACITY, "allocatable": _CAPACITY, "conditions": [ready]}
        kind = "application/merge-patch+json"
        answer = self._api.ask("PATCH", f"/api/v1/nodes/{_NODE}/status", {"status": status}, kind)
        assert answer.code == 200, answer.document
        self._thread.start()

    def close(self) -> None:
        """Kill all pods."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        for pod in self._by_uid.values():
            pod.kill()

    @property
    def pods(self) -> dict[str, PodProcesses]:
        """The pods of the node by name."""
        return {pod.pod["metadata"]["name"]: pod for pod in [*self._by_uid.values()]}

    def _run(self) -> None:
        try:
            while not self._ended.wait(_PAUSE_SECONDS):
                self._renew()
                self._sync()
        finally:
            if not self._ended.is_set():
                self.error = traceback.format_exc()

    def _renew(self) -> None:
        """The lease by which the controllers know that the node is alive."""
        if time.monotonic() < self._renewed + _LEASE_SECONDS:
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": _NODE, "leaseDurationSeconds": 40, "renewTime": now}
        metadata = {"name": _NODE, "namespace": "kube-node-lease"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        path = f"{_LEASES}/{_NODE}?fieldManager=kubelet&force=true"
        document = {**lease, "metadata": metadata, "spec": spec}
        answer = self._api.ask("PATCH", path, document, "application/apply-patch+yaml")
        if answer.code in {200, 201}:  # the namespace comes soon after the server
            self._renewed = time.monotonic()

    def _sync(self) -> None:
        query = f"fieldSelector=spec.nodeName={_NODE}&resourceVersion=0"
        found = self._api.ask("GET", f"/api/v1/pods?{query}").document["items"]
        documents = {pod["metadata"]["uid"]: pod for pod in found}
        for uid in self._by_uid.keys() - documents.keys():
            self._by_uid[uid].kill()  # until then its connections are its own
            del self._by_uid[uid]
        for uid, document in documents.items():
            if uid not in self._by_uid:
                number = next(self._numbers)
                address = f"{POD_NETWORK}{number // 250}.{number % 250 + 1}"
                folder = self._folder / f"{document['metadata']['name']}-{number}"
                self._by_uid[uid] = PodProcesses(self._api, document, folder, address)
        self._write_hosts()
        for uid, document in documents.items():
            self._by_uid[uid].sync(document, self._network)

    def _write_hosts(self) -> None:
        services = self._api.ask("GET", "/api/v1/services?resourceVersion=0").document["items"]
        lines = ["127.0.0.1 localhost kubernetes.default.svc"]
        for pod in self._by_uid.values():
            lines.append(" ".join([pod.address, *_names(pod, services)]))
        new = self._network / "new"
        new.write_text("\n".join(lines) + "\n")
        new.replace(self._network / "hosts")  # at once: half a line would be another address


def _names(pod: PodProcesses, services: list[dict[str, Any]]) -> Iterator[str]:
    """Names of a pod: its own, and that of its headless service which selects it."""
    metadata, spec = pod.pod["metadata"], pod.pod["spec"]
    yield spec.get("hostname", metadata["name"])
    for service in services:
        about, wanted = service["metadata"], service["spec"]
        selects = wanted.get("selector", {}).items() <= metadata.get("labels", {}).items()
        named = about["name"] == spec.get("subdomain") and "hostname" in spec
        own = about["namespace"] == metadata["namespace"] and wanted.get("clusterIP") == "None"
        if own and named and selects and (wanted.get("publishNotReadyAddresses") or pod.ready):
            yield f"{spec['hostname']}.{about['name']}.{about['namespace']}.svc"

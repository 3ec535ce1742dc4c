"""The life of one pod on a node: its containers are started, probed, restarted and ended."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chart.api_server import ApiServer
from tests.chart.container import NETWORK, Container, Mount, image_environment
from tests.chart.pod_volumes import (
    MissingObjectError,
    mounts_of,
    variables_of,
    volume_folder,
)
from tests.support.dockerfile import ROOT, parse

_FINAL = parse((ROOT / "Dockerfile").read_text())[-1]
_ENTRY, _ARGUMENTS = (json.loads(_FINAL.values(name)[0]) for name in ("ENTRYPOINT", "CMD"))
_VARIABLES = dict(re.findall(r"(\w+)=(\S+)", _FINAL.values("ENV")[0]))
_OURS = ("Initialized", "ContainersReady", "Ready")


class _Probe:
    """A probe of a container: how often it failed in a row, and whether it ever succeeded."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._next = 0.0
        self._failures = 0
        self.succeeded = False

    @property
    def failed(self) -> bool:
        return self._failures >= int(self._spec.get("failureThreshold", 3))

    def ask(self, address: str, ports: Mapping[str, int]) -> None:
        """Ask if it is time to."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._spec.get("periodSeconds", 10)
        wanted = self._spec["httpGet"]
        page = f"http://{address}:{ports.get(wanted['port'], wanted['port'])}{wanted['path']}"
        try:
            with urllib.request.urlopen(page, timeout=self._spec.get("timeoutSeconds", 1)):
                self.succeeded, self._failures = True, 0
        except (OSError, urllib.error.HTTPError):
            self.succeeded, self._failures = False, self._failures + 1


class _Member:
    """One container of a pod over its restarts."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.run: Container | None = None
        self.restarts = 0
        self.begun = self.ended = ""
        self.code: int | None = None
        self.begin({})

    def begin(self, _: Mapping[str, Any]) -> None:
        """Its probes begin with it."""
        self.probes = {
            name: _Probe(self.spec[f"{name}Probe"])
            for name in ("startup", "liveness", "readiness")
            if f"{name}Probe" in self.spec
        }

    @property
    def ready(self) -> bool:
        """As its readiness probe said last; without one, while it runs."""
        if self.run is None or self.code is not None:
            return False
        return "readiness" not in self.probes or self.probes["readiness"].succeeded

    def probe(self, address: str) -> bool:
        """Ask what is due; False if it has to be killed."""
        named = [port for port in self.spec.get("ports", []) if "name" in port]
        ports = {one["name"]: one["containerPort"] for one in named}
        startup = self.probes.get("startup")
        if startup is not None and not startup.succeeded:
            startup.ask(address, ports)
            return not startup.failed
        for name in ("liveness", "readiness"):
            if name in self.probes:
                self.probes[name].ask(address, ports)
        return "liveness" not in self.probes or not self.probes["liveness"].failed

    def status(self) -> dict[str, Any]:
        """As a kubelet reports it."""
        if self.run is None:
            state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        elif self.code is None:
            state = {"running": {"startedAt": self.begun}}
        else:
            reason = "Completed" if self.code == 0 else "Error"
            state = {"terminated": {"exitCode": self.code, "reason": reason}}
            state["terminated"] |= {"startedAt": self.begun, "finishedAt": self.ended}
        return {
            "name": self.spec["name"],
            "image": self.spec["image"],
            "imageID": "checkout",
            "ready": self.ready,
            "started": self.run is not None,
            "restartCount": self.restarts,
            "state": state,
        }


class PodProcesses:
    """A pod that was placed on the node; `sync` is called repeatedly with its newest document."""

    def __init__(self, api: ApiServer, pod: dict[str, Any], folder: Path, address: str) -> None:
        self._api = api
        self._folder = folder
        self.pod = pod
        self.address = address
        self._folders: dict[str, Path] = {}
        self._first = [_Member(container) for container in pod["spec"].get("initContainers", [])]
        self._members = [_Member(container) for container in pod["spec"]["containers"]]
        self._reported: dict[str, Any] = {}
        self._kill_at: float | None = None
        self._restart_at = 0.0
        folder.mkdir(parents=True)

    @property
    def ready(self) -> bool:
        """Whether all containers are."""
        return all(member.ready for member in self._members)

    def pids(self) -> set[int]:
        """Processes of all containers."""
        runs = [member.run for member in self._members]
        return {pid for run in runs if run is not None and run.code is None for pid in run.pids()}

    def log(self) -> Path:
        """What the first container of the pod printed."""
        return self._folder / f"{self._members[0].spec['name']}.log"

    def sync(self, pod: dict[str, Any], network: Path) -> None:
        """Bring the processes nearer to what the document wants, and report them.

        `network` is a folder with a file `hosts`, by which they find others.
        """
        self.pod = pod
        self._look()
        if "deletionTimestamp" in pod["metadata"]:
            self._end()
        else:
            self._go_on(network)
        self._report()

    def kill(self) -> None:
        """The pod is gone, or the node."""
        for member in [*self._first, *self._members]:
            if member.run is not None:
                member.run.kill()

    def _look(self) -> None:
        for member in [*self._first, *self._members]:
            if member.run is not None and member.code is None and member.run.code is not None:
                member.code, member.ended = member.run.code, _now()
                self._restart_at = time.monotonic() + min(2**member.restarts, 10)

    def _end(self) -> None:
        grace = self.pod["metadata"].get("deletionGracePeriodSeconds", 30)
        if self._kill_at is None:
            self._kill_at = time.monotonic() + grace
        running = [
            member for member in self._members if member.run is not None and member.code is None
        ]
        for member in running:
            assert member.run is not None
            if time.monotonic() >= self._kill_at:
                member.run.kill()
            else:
                member.run.terminate()
        if not running:
            self._report()
            own = {"uid": self.pod["metadata"]["uid"]}
            options = {"gracePeriodSeconds": 0, "preconditions": own}
            self._api.ask("DELETE", self._path(), options)

    def _go_on(self, network: Path) -> None:
        waiting = [one for one in self._first if one.code != 0]
        for member in waiting[:1] or self._members:
            if member.run is None:
                self._start(member, network)
            elif member.code is None:
                if not member.probe(self.address):
                    member.run.kill()
            elif self._restarts(member) and time.monotonic() >= self._restart_at:
                member.restarts += 1
                self._start(member, network)

    def _restarts(self, member: _Member) -> bool:
        policy = self.pod["spec"]["restartPolicy"]
        return policy == "Always" or (policy == "OnFailure" and member.code != 0)

    def _start(self, member: _Member, network: Path) -> None:
        pod = {**self.pod, "status": {**self.pod.get("status", {}), "podIP": self.address}}
        metadata, spec = pod["metadata"], member.spec
        try:
            for volume in pod["spec"].get("volumes", []):
                if volume["name"] not in self._folders:
                    place = self._folder / "volumes" / volume["name"]
                    self._folders[volume["name"]] = volume_folder(self._api, pod, volume, place)
            variables = variables_of(self._api, pod, spec)
        except MissingObjectError:
            return  # a kubelet tries again
        environment = {
            **image_environment(_VARIABLES),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self._api.port),
            "HOSTNAME": pod["spec"].get("hostname", metadata["name"]),
            **variables,
        }
        arguments = spec.get("args", [] if "command" in spec else _ARGUMENTS)
        member.begin(environment)
        member.code, member.begun = None, _now()
        member.run = Container(
            spec["name"],
            self._folder,
            [*spec.get("command", _ENTRY), *arguments],
            environment,
            [*mounts_of(spec, self._folders), Mount(network, NETWORK, read_only=True)],
            read_only=spec.get("securityContext", {}).get("readOnlyRootFilesystem", False),
        )

    def _phase(self) -> str:
        codes = [member.code for member in self._members]
        if any(member.run is None for member in self._members):
            return "Pending"
        if any(code is None for code in codes) or any(map(self._restarts, self._members)):
            return "Running"
        return "Failed" if any(codes) else "Succeeded"

    def _report(self) -> None:
        found = self.pod.get("status", {}).get("conditions", [])
        others = [one for one in found if one["type"] not in _OURS]
        first = all(member.code == 0 for member in self._first)
        ours = zip(_OURS, (first, self.ready, self.ready), strict=True)
        status = {
            "phase": self._phase(),
            "hostIP": "127.0.0.1",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "initContainerStatuses": [member.status() for member in self._first],
            "containerStatuses": [member.status() for member in self._members],
            "conditions": [*others, *({"type": kind, "status": str(so)} for kind, so in ours)],
        }
        if status != self._reported:
            kind = "application/merge-patch+json"
            answer = self._api.ask("PATCH", f"{self._path()}/status", {"status": status}, kind)
            assert answer.code in {200, 404}, answer.document
            self._reported = status

    def _path(self) -> str:
        metadata = self.pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

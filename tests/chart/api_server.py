"""A real Kubernetes API server with its etcd: it admits objects, and runs nothing.

All programs are built from one Go module, pinned by go.sum, once into the user's cache. That takes
an idle machine of two cores ten minutes.
"""

import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ingestd.dev.jars import cache_folder
from tests.support.chart import ROOT
from tests.support.closing import Closing
from tests.support.daemon import free_port
from tests.support.made_once import alone

_MODULE = ROOT / "tests" / "chart" / "apiserver"
_CRDS = ROOT / "tests" / "chart" / "crds"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    **{name: f"k8s.io/kubernetes/cmd/{name}" for name in _CONTROL_PLANE},
}
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_TOKEN = "chart-e2e"
_START_SECONDS = 180
_IDLE_SECONDS = 30.0


class Answer(NamedTuple):
    """What the server says: a status, a document, and its warnings."""

    code: int
    document: dict[str, Any]
    warnings: list[str]


def can_be_had() -> bool:
    """Whether the programs are in the cache, or there is Go to build them."""
    return all(kubernetes_program(name) is not None for name in _PACKAGES)


def kubernetes_program(name: str) -> Path | None:
    """A program of Kubernetes from the cache, or built with Go; None if it has to be and cannot."""
    digest = hashlib.sha256((_MODULE / "go.sum").read_bytes()).hexdigest()[:16]
    program = cache_folder() / "apiserver" / digest / name
    with alone(program):
        if not program.exists() and shutil.which("go"):
            program.parent.mkdir(parents=True, exist_ok=True)
            unfinished = program.with_suffix(".new")
            build = ["go", "build", "-mod=readonly", "-trimpath", f"-ldflags={_link_flags()}"]
            subprocess.run(
                [*build, "-o", str(unfinished), _PACKAGES[name]],
                cwd=_MODULE,
                env={**os.environ, "CGO_ENABLED": "0"},
                check=True,
            )
            unfinished.rename(program)
    return program if program.exists() else None


def _link_flags() -> str:
    """Without debugging symbols, and with the version that the server is to tell."""
    version = re.search(
        r"k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)", (_MODULE / "go.mod").read_text()
    )
    assert version is not None
    names = ("gitVersion", "gitMajor", "gitMinor")
    told = zip(names, version.groups(), strict=True)
    place = "k8s.io/component-base/version"
    return " ".join(["-s", "-w", *(f"-X {place}.{name}={value}" for name, value in told)])


def operator_kinds() -> list[dict[str, Any]]:
    """The Prometheus operator's definitions of the kinds that the chart makes."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", _OPERATOR],
        cwd=_CRDS,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(json.loads(done.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
    names = ("podmonitors", "prometheusrules", "servicemonitors")
    return [
        yaml.safe_load((folder / f"monitoring.coreos.com_{name}.yaml").read_text())
        for name in names
    ]


class ApiServer(Closing):
    """Runs while the block does; objects are applied as `helm` would have the server apply them.

    With `accounts`, pods need a service account, and get its token: controllers make the accounts.
    """

    def __init__(self, folder: Path, *, accounts: bool = False) -> None:
        self._folder = folder
        self._accounts = accounts
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port = free_port()
        self.key = folder / "accounts.key"
        """With which tokens of service accounts are signed."""
        self.certificate = folder / "certificates" / "apiserver.crt"
        """The server's own, with its authority."""
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        self._connections: dict[int, tuple[HTTPSConnection, float]] = {}

    def start(self) -> None:
        """Start both processes, and wait until the server answers."""
        store = f"http://127.0.0.1:{free_port()}"
        self._start_etcd(store)
        self._start_server(store)
        self._wait()

    def close(self) -> None:
        """End both processes."""
        for connection, _ in self._connections.values():
            connection.close()
        for process in reversed(self._processes):
            process.kill()
            process.wait(120)

    def apply(self, one: dict[str, Any], namespace: str, *, dry: bool = False) -> Answer:
        """Server-side apply of an object."""
        plural, namespaced = self._kind(one["apiVersion"], one["kind"])
        group = one["apiVersion"]
        base = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        place = f"/namespaces/{namespace}" if namespaced else ""
        query = "?fieldManager=helm&fieldValidation=Strict" + ("&dryRun=All" if dry else "")
        path = f"{base}{place}/{plural}/{one['metadata']['name']}{query}"
        return self.ask("PATCH", path, one, "application/apply-patch+yaml")

    def ask(
        self,
        method: str,
        path: str,
        document: dict[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """One request, on the connection of this thread."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": content_type}
        connection = self._connection()
        try:
            connection.request(method, path, body, headers)
            with connection.getresponse() as answer:
                warnings = answer.headers.get_all("Warning") or []
                return Answer(answer.status, json.loads(answer.read()), warnings)
        except (OSError, ValueError, HTTPException):
            connection.close()
            raise

    def _connection(self) -> HTTPSConnection:
        """A kept one; a new one if the server could have closed it, which it does when idle."""
        thread, now = threading.get_ident(), time.monotonic()
        connection, used = self._connections.get(thread, (None, 0.0))
        if connection is None:
            context = _unverified()
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        elif now - used > _IDLE_SECONDS:
            connection.close()  # the next request opens it again
        self._connections[thread] = connection, now
        return connection

    def _kind(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._kinds:
            base = "/api" if "/" not in version else "/apis"
            for resource in self.ask("GET", f"{base}/{version}").document["resources"]:
                if "/" not in resource["name"]:
                    self._kinds[version, resource["kind"]] = (
                        resource["name"],
                        resource["namespaced"],
                    )
        return self._kinds[version, kind]

    def _start_etcd(self, store: str) -> None:
        program = kubernetes_program("etcd")
        assert program is not None
        peer = f"http://127.0.0.1:{free_port()}"
        self._start(
            "etcd",
            program,
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )

    def _start_server(self, store: str) -> None:
        program = kubernetes_program("kube-apiserver")
        assert program is not None
        generate = ["openssl", "genrsa", "-out", str(self.key), "2048"]
        subprocess.run(generate, check=True, capture_output=True)
        tokens = self._folder / "tokens.csv"
        tokens.write_text(f'{_TOKEN},chart-e2e,1,"system:masters"\n')
        self._start(
            "apiserver",
            program,
            f"--etcd-servers={store}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.certificate.parent}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://chart-e2e",
            f"--service-account-key-file={self.key}",
            f"--service-account-signing-key-file={self.key}",
            *([] if self._accounts else ["--disable-admission-plugins=ServiceAccount"]),
        )

    def run(self, name: str, *arguments: str) -> None:
        """Start another program of Kubernetes, which ends with the server."""
        program = kubernetes_program(name)
        assert program is not None
        self._start(name, program, f"--kubeconfig={self.kubeconfig()}", *arguments)

    def kubeconfig(self) -> Path:
        """A file with which clients have all rights."""
        file = self._folder / "kubeconfig"
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority": str(self.certificate),
        }
        context = {"cluster": "test", "user": "test"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": _TOKEN}}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }
        file.write_text(yaml.safe_dump(document))
        return file

    def _start(self, name: str, program: Path, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(
                [str(program), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )
        self._processes.append(process)

    def _wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and all(process.poll() is None for process in self._processes):
            try:
                if self.ask("GET", "/api/v1/namespaces/default").code == 200:
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.2)
        logs = [path.read_text()[-2000:] for path in self._folder.glob("*.log")]
        raise AssertionError("the API server does not start:\n" + "\n".join(logs))


def _unverified() -> ssl.SSLContext:
    """The server's certificate is its own."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

"""The pod of a rendered chart as processes of this machine: its files, its command, its probes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.chart import only
from tests.support.daemon import Daemon
from tests.support.dockerfile import ROOT, parse


class Pod:
    """The daemon's container of a set of objects, with `root` in the place of its root.

    `secrets` are what the cluster has: contents by key, by the secret's name. In files and in
    variables, paths below the places where volumes are mounted are those of this machine.
    """

    def __init__(
        self,
        found: list[dict[str, Any]],
        root: Path,
        secrets: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        spec = only(found, "StatefulSet")["spec"]["template"]["spec"]
        self.container = spec["containers"][0]
        self._root = root
        mounts = {
            volume_mount["name"]: volume_mount["mountPath"]
            for volume_mount in self.container["volumeMounts"]
        }
        places = "|".join(map(re.escape, mounts.values()))
        self._mounted = re.compile(rf"(?<![\w./-])({places})(?=/|\b)")
        for volume in spec["volumes"]:
            folder = self.path(mounts[volume["name"]])
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in _contents(volume, found, secrets or {}).items():
                (folder / name).write_text(self._moved(text))

    def path(self, inside: str) -> Path:
        """Where a path of the container is on this machine."""
        return self._root / inside.lstrip("/")

    @property
    def port(self) -> int:
        """The port that the probes ask."""
        port: int = self.container["ports"][0]["containerPort"]
        return port

    def start(self) -> Daemon:
        """Run the image's entry point with its arguments, or those of the manifest."""
        final = parse((ROOT / "Dockerfile").read_text())[-1]
        image = [json.loads(final.values(one)[0]) for one in ("ENTRYPOINT", "CMD")]
        command: list[str] = self.container.get("command") or image[0]
        given: list[str] = [*command[1:], *(self.container.get("args") or image[1])]
        assert command[0] == "/opt/ingestd/bin/ingestd"
        variables = {
            one["name"]: self._moved(one["value"]) for one in self.container.get("env", [])
        }
        log = self._root / "pod.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [str(Path(sys.executable).parent / "ingestd"), *map(self._moved, given)],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.path("/tmp"),
                env={**os.environ, **variables},
            )
        return Daemon(process, log, self.port)

    def probe(self, daemon: Daemon, name: str) -> int:
        """Status of what the manifest's probe asks for."""
        return daemon.get(self.container[f"{name}Probe"]["httpGet"]["path"])[0]

    def configuration(self) -> dict[str, Any]:
        """What the pod reads."""
        document: dict[str, Any] = yaml.safe_load(
            self.path("/etc/ingestd/ingestd.yaml").read_text()
        )
        return document

    def _moved(self, text: str) -> str:
        return self._mounted.sub(lambda match: str(self.path(match[1])), text)


def _contents(
    volume: Mapping[str, Any],
    found: list[dict[str, Any]],
    secrets: Mapping[str, Mapping[str, str]],
) -> Mapping[str, str]:
    """Files of a volume when the container starts, and what is in them."""
    if "configMap" in volume:
        data: dict[str, str] = only(found, "ConfigMap", volume["configMap"]["name"])["data"]
        return data
    return secrets[volume["secret"]["secretName"]] if "secret" in volume else {}

"""A release of the chart on this machine: installed, upgraded, its one pod a process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.chart.pod import Pod
from tests.support.chart import objects, only
from tests.support.closing import Closing
from tests.support.daemon import Daemon

LABELS = {"namespace": "lake", "pod": "shop-ingestd-0"}
"""What a monitor of the chart would add to the pod's series."""


class Release(Closing):
    """Values, the objects that they give, and the process of the pod while there is one."""

    def __init__(
        self,
        folder: Path,
        values: Mapping[str, Any],
        secrets: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._folder = folder
        self._secrets = secrets
        self._daemon: Daemon | None = None
        self.found: list[dict[str, Any]] = []
        self.pod = self._rendered(values)

    def tell(self, error: BaseException) -> None:
        """The end of the pod's log."""
        if self._daemon is not None:
            error.add_note(self._daemon.tail(30))

    def close(self) -> None:
        """Kill the pod."""
        if self._daemon is not None:
            self._daemon.kill()

    @property
    def daemon(self) -> Daemon:
        """The process that runs, or ran last."""
        assert self._daemon is not None
        return self._daemon

    def rules(self) -> dict[str, Any]:
        """The alerts, as the chart makes them."""
        spec: dict[str, Any] = only(self.found, "PrometheusRule")["spec"]
        return spec

    def place(self) -> None:
        """The pod is placed: return when it is ready."""
        self._daemon = self.pod.start()
        self.daemon.wait_until(lambda: self.pod.probe(self.daemon, "startup") == 200)
        self.daemon.wait_until(lambda: self.pod.probe(self.daemon, "readiness") == 200)

    def upgrade(self, values: Mapping[str, Any]) -> None:
        """End the running pod, if there is one; its successor gets the new objects."""
        if self.daemon.process.poll() is None:
            self.daemon.terminate()
            assert self.daemon.wait() == 0
        self.pod = self._rendered(values)
        self.place()

    def wait_for_rows(self) -> None:
        """Return when a batch has put rows into tables: from then on all series are there."""
        self.daemon.wait_until(lambda: bool(self.series("ingestd_table_freshness_seconds")))

    def series(self, name: str) -> list[float]:
        """Values of the series of one metric, by the page that Prometheus scrapes."""
        _, page = self.daemon.get("/metrics")
        found = [line for line in page.splitlines() if line.startswith(f"{name}{{")]
        return [float(one.rpartition(" ")[2]) for one in found]

    def position(self) -> float:
        """Offsets that the tables have reached, summed over all topic partitions."""
        return sum(self.series("ingestd_source_position_offset"))

    def _rendered(self, values: Mapping[str, Any]) -> Pod:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values)))
        self.found = objects("--values", file)
        return Pod(self.found, self._folder / "pod", self._secrets)

"""A real Prometheus beside a daemon: it scrapes, evaluates the chart's rules, and is asked."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.chart import debian_program
from tests.support.closing import Closing
from tests.support.daemon import free_port

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = r"(\d+)(ms|s|m|h|d)"
_PAUSE_SECONDS = 0.2


def hastened(spec: Mapping[str, Any], haste: int) -> dict[str, Any]:
    """Rules in which all durations, `for` and those in brackets, are that many times shorter.

    Nothing else is touched. Thresholds are values of the chart.
    """
    groups = [
        {**group, "rules": [_hastened_rule(rule, haste) for rule in group["rules"]]}
        for group in spec["groups"]
    ]
    return {**spec, "groups": groups}


def _hastened_rule(rule: Mapping[str, Any], haste: int) -> dict[str, Any]:
    expression = re.sub(r"\[[^\]]*\]", lambda match: _shortened(match[0], haste), rule["expr"])
    shorter = {"for": _shortened(rule["for"], haste)} if "for" in rule else {}
    return {**rule, "expr": expression, **shorter}


def _shortened(text: str, haste: int) -> str:
    def shorter(match: re.Match[str]) -> str:
        milliseconds = int(match[1]) * _UNITS[match[2]] * 1000 / haste
        assert milliseconds >= 1, f"{match[0]} is too short to be shortened"
        return f"{milliseconds:.0f}ms"

    return re.sub(_DURATION, shorter, text)


def prometheus_program() -> Path | None:
    """Prometheus from the PATH or Debian's package; None without either."""
    return debian_program("prometheus", "prometheus")


class Prometheus(Closing):
    """Runs while the block does; it scrapes a port of this machine as a pod of a namespace."""

    def __init__(
        self, folder: Path, port: int, *, labels: Mapping[str, str], rules: Mapping[str, Any]
    ) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        (folder / "rules.yaml").write_text(yaml.safe_dump(dict(rules)))
        target = {"targets": [f"127.0.0.1:{port}"], "labels": dict(labels)}
        document = {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "1s",
            },
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "ingestd", "static_configs": [target]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
        self._address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it scrapes at once."""
        program = prometheus_program()
        assert program is not None
        with (self._folder / "prometheus.log").open("wb") as output:
            self._process = subprocess.Popen(
                [
                    str(program),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address={self._address}",
                    "--log.level=warn",
                ],
                cwd=self._folder,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def close(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(120)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression gives now."""
        found: list[dict[str, Any]] = self._ask("query", query=expression)["result"]
        return found

    def wait_for_alerts(self, *names: str, seconds: float = 120) -> None:
        """Return when all of these fire."""
        self._wait_until(lambda now: set(names) <= now, f"to fire: {names}", seconds)

    def wait_until_clear(self, *names: str, seconds: float = 120) -> None:
        """Return when none of these fires."""
        self._wait_until(lambda now: not set(names) & now, f"to clear: {names}", seconds)

    def firing(self) -> set[str]:
        """Names of the alerts that fire."""
        return {
            one["labels"]["alertname"]
            for one in self._ask("alerts")["alerts"]
            if one["state"] == "firing"
        }

    def _wait_until(self, holds: Callable[[set[str]], bool], what: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not holds(now := self.firing()):
            assert time.monotonic() < end, f"waited {seconds} s for {what}; firing: {now}"
            time.sleep(_PAUSE_SECONDS)

    def _ask(self, what: str, **parameters: str) -> dict[str, Any]:
        url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        end = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(url, timeout=30) as answer:
                    data: dict[str, Any] = json.load(answer)["data"]
                    return data
            except urllib.error.HTTPError as error:
                assert error.code != 400, f"{parameters}: {error.read().decode()}"
                time.sleep(_PAUSE_SECONDS)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(_PAUSE_SECONDS)

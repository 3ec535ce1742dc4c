"""The bill of materials names what is installed and what is inside, with hash and licence."""

import json
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from docs.sbom import (
    completed,
    crate_components,
    crate_licences,
    jar_component,
    lock_entries,
    python_components,
    shipped_crates,
    without_licence,
)
from docs.spark_jars import listed_licences, read_jars

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(sysconfig.get_path("purelib"))
LOCK = (ROOT / "requirements.lock").read_text()


def environment() -> dict[str, Any]:
    """As cyclonedx-py describes what is locked: licences of most, hashes of none."""
    names = [
        (python_component["name"], python_component["version"])
        for python_component in python_components(LOCK)
    ]
    parts = [
        {"bom-ref": f"{name}=={version}", "name": name, "version": version}
        | ({} if name in {"protobuf", "hdfs-native"} else {"licenses": [{"expression": "MIT"}]})
        for name, version in [*names, ("ingestd_native", "0.1.0")]
    ]
    return {
        "components": parts,
        "dependencies": [{"ref": part["bom-ref"], "dependsOn": ["x"]} for part in parts],
    }


@pytest.mark.skipif(shutil.which("cargo") is None, reason="crates are known by cargo")
def test_jars_and_crates_are_parts_of_what_brings_them_each_with_hash_and_licence() -> None:
    document = completed(environment(), PACKAGES)
    parts = {component["bom-ref"]: component for component in document["components"]}
    assert len(parts) == len(document["components"])
    assert without_licence(document) == []
    edges = {edge["ref"]: edge.get("dependsOn", []) for edge in document["dependencies"]}
    assert edges.keys() == parts.keys()
    (spark,) = (edges[ref] for ref in edges if ref.startswith("pyspark=="))
    (native,) = (edges[ref] for ref in edges if ref.startswith("ingestd_native=="))
    jars = {ref for ref in parts if ref.startswith("pkg:maven/")}
    crates = {ref for ref in parts if ref.startswith("pkg:cargo/")}
    assert len(jars) == len(list((PACKAGES / "pyspark" / "jars").glob("*.jar"))) > 200
    assert crates
    assert not any(ref.startswith("pkg:cargo/proptest@") for ref in crates), "tests' crates"
    assert (set(spark), set(native)) == ({"x", *jars}, {"x", *crates})
    for ref in parts.keys() - {"ingestd_native==0.1.0"}:
        *_, distribution = parts[ref]["externalReferences"]
        assert all(len(value["content"]) == 64 for value in distribution["hashes"]), ref


def test_jars_have_the_licences_that_sparks_own_licence_file_gives_them() -> None:
    jars = {f"{jar.group}:{jar.artifact}:{jar.version[0]}": jar for jar in read_jars(PACKAGES)}
    licences = {name: jar.licence for name, jar in jars.items()}
    assert licences["org.typelevel:cats-kernel_2.13:2"] == "MIT"
    assert licences["jakarta.servlet:jakarta.servlet-api:6"] == "EPL-2.0"
    assert licences["org.apache.spark:spark-core_2.13:4"] == "Apache-2.0"
    assert licences["jline:jline:2"] == "BSD-2-Clause"
    assert licences["org.jline:jline:3"] == "BSD-3-Clause"
    component = jar_component(jars["org.typelevel:cats-kernel_2.13:2"])
    assert (component["group"], component["name"]) == ("org.typelevel", "cats-kernel_2.13")
    assert component["licenses"] == [{"expression": "MIT"}]


def test_a_jar_of_which_nothing_is_known_is_refused_by_name(tmp_path: Path) -> None:
    licences = tmp_path / "pyspark-9.dist-info" / "licenses"
    jars = tmp_path / "pyspark" / "jars"
    licences.mkdir(parents=True)
    jars.mkdir(parents=True)
    (licences / "LICENSE").write_text("MIT License\n---\norg.a:known\n\nprose: not an entry\n")
    (jars / "known-1.0.jar").write_bytes(b"")
    assert [(jar.group, jar.licence) for jar in read_jars(tmp_path)] == [("org.a", "MIT")]
    (jars / "stranger-1.0.jar").write_bytes(b"")
    with pytest.raises(ValueError, match=r"stranger-1\.0\.jar"):
        list(read_jars(tmp_path))


def test_an_artifact_of_two_projects_has_two_licences() -> None:
    text = "a:before\n\nBSD 2-Clause\n---\na:x\n\nMIT License\n---\nb:x:jar\nc:y https://c.org/y\n"
    listed = listed_licences(text)
    assert listed["x"] == {"a": "BSD-2-Clause", "b": "MIT"}
    assert (listed["y"], "before" in listed) == ({"c": "MIT"}, False)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="crates are known by cargo")
def test_licences_of_crates_are_expressions() -> None:
    licences = crate_licences()
    assert [name for name, licence in licences.items() if "/" in licence or not licence] == []
    assert any(name.startswith("pyo3 ") for name in licences)


def test_a_crate_in_two_versions_is_in_it_if_the_extension_needs_that_version() -> None:
    def package(name: str, version: str, *needs: str) -> str:
        lines = [f'name = "{name}"', f'version = "{version}"', f"dependencies = {list(needs)}"]
        return "\n".join(["[[package]]", *lines, f'checksum = "{"a" * 64}"', ""])

    lock = package("parser", "1.0", "syn 2.0") + package("tester", "1.0", "syn 3.0", "rand")
    lock += package("syn", "2.0") + package("syn", "3.0") + package("rand", "1.0")
    shipped = shipped_crates(lock, "[dependencies]\nparser = '1'\n[dev-dependencies]\ntester = '1'")
    assert [part["purl"] for part in shipped] == ["pkg:cargo/parser@1.0", "pkg:cargo/syn@2.0"]


def test_an_entry_without_a_hash_is_refused() -> None:
    good = "one==1.0 \\\n    --hash=sha256:" + "a" * 64 + "\n"
    assert [python_component["purl"] for python_component in python_components(good)] == [
        "pkg:pypi/one@1.0"
    ]
    for bad in ("one==1.0\n", "one>=1.0 --hash=sha256:" + "a" * 64):
        with pytest.raises(ValueError, match="no version or no hash"):
            list(python_components(bad))
    assert len(list(python_components(LOCK))) == len(list(lock_entries(LOCK)))


def test_the_workspace_itself_is_no_part_of_its_own() -> None:
    text = '[[package]]\nname = "own"\nversion = "1"\n[[package]]\nname = "x"\nversion = "2"\n'
    (crate,) = crate_components(text + f'checksum = "{"b" * 64}"\n', {"x 2": "MIT"})
    assert (crate["name"], crate["licenses"]) == ("x", [{"expression": "MIT"}])
    assert json.loads(json.dumps(crate)) == crate

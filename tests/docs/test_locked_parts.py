"""What is compared with advisories is everything that is locked, and what jars are made of."""

import zipfile
from pathlib import Path

from docs.advisories import CRATES, MAVEN, PYPI
from docs.audit import spark_jars
from docs.locked_parts import LOCKS, jar_parts, locked_parts
from docs.sbom import ROOT


def test_packages_of_all_locks_crates_and_pinned_jars_are_parts() -> None:
    parts = locked_parts()
    names = {(one.ecosystem, one.name) for one in parts}
    assert {(PYPI, "pyspark"), (PYPI, "pip-audit"), (PYPI, "sphinx"), (PYPI, "maturin")} <= names
    assert {(CRATES, "pyo3"), (MAVEN, "org.apache.kafka:kafka-clients")} <= names
    assert {one.where for one in parts if one.ecosystem == PYPI} <= set(LOCKS)
    tools = {str(path.relative_to(ROOT)) for path in ROOT.glob("*.lock")}
    assert tools | {str(path.relative_to(ROOT)) for path in (ROOT / ".ci").glob("*.lock")} == set(
        LOCKS
    )


def jar(path: Path, *notes: tuple[str, str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/B.class", b"")
        for group, artifact, version in notes:
            archive.writestr(
                f"META-INF/maven/{group}/{artifact}/pom.properties",
                f"#made\nartifactId={artifact}\r\ngroupId={group}\r\nversion={version}\r\n",
            )


def test_a_jar_is_itself_and_what_it_shades(tmp_path: Path) -> None:
    jar(tmp_path / "all-2.0-linux.jar", ("org.a", "all", "2.0"), ("org.b", "inner", "1.1"))
    jar(tmp_path / "silent_2.13-3.4.Final.jar", ("org.b", "inner", "1.1"))
    found = {(one.name, one.version, one.where) for one in jar_parts(tmp_path)}
    assert found == {
        ("org.a:all", "2.0", "all-2.0-linux.jar"),
        ("org.b:inner", "1.1", "all-2.0-linux.jar"),
        ("?:silent_2.13", "3.4.Final", "silent_2.13-3.4.Final.jar"),
    }


def test_the_jars_of_spark_are_known() -> None:
    names = {one.name for one in jar_parts(spark_jars())}
    assert {"org.apache.spark:spark-core_2.13", "org.eclipse.jetty:jetty-http"} <= names
    assert "?:derby" in names

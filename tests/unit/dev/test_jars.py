"""Archives come once, verified, from a repository made of files."""

import hashlib
import multiprocessing
from pathlib import Path

import pytest

from ingestd.dev import jars
from ingestd.dev.jars import JarError, fetch, read_pins
from ingestd.errors import ConfigError

ONE = "org.example:one:1.0"
TWO = "org.example:two:2.0"
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>
<artifactId>{name}</artifactId><version>{version}</version><dependencies>{needs}</dependencies>
</project>"""
NEEDS_ONE = """<dependency><groupId>org.example</groupId><artifactId>one</artifactId>
<version>1.0</version></dependency>"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    for coordinate, needs in ((ONE, ""), (TWO, NEEDS_ONE)):
        _, name, version = coordinate.split(":")
        folder = root / "org" / "example" / name / version
        folder.mkdir(parents=True)
        (folder / f"{name}-{version}.jar").write_bytes(coordinate.encode())
        pom = POM.format(name=name, version=version, needs=needs)
        (folder / f"{name}-{version}.pom").write_text(pom)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", root.as_uri() + "/")
    return root


def pin_of(coordinate: str) -> dict[str, str]:
    return {coordinate: hashlib.sha256(coordinate.encode()).hexdigest()}


def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_a_second_use_needs_neither_java_nor_network(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch([ONE], tmp_path / "jars", pins=pin_of(ONE))
    assert [path.read_bytes() for path in first] == [ONE.encode()]
    no_java(monkeypatch)
    assert fetch([ONE], tmp_path / "jars", pins=pin_of(ONE)) == first


def test_what_an_archive_needs_comes_along_only_when_asked(
    repository: Path, tmp_path: Path
) -> None:
    alone = fetch([TWO], tmp_path / "jars")
    both = fetch([TWO], tmp_path / "jars", transitive=True)
    assert [path.name for path in alone] == ["two-2.0.jar"]
    assert [path.name for path in both] == ["one-1.0.jar", "two-2.0.jar"]


def test_an_archive_with_another_digest_is_not_used(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(JarError, match=r"SHA-256 differs from the pinned one: one-1\.0\.jar"):
        fetch([ONE], tmp_path / "jars", pins={ONE: "0" * 64})
    assert not list((tmp_path / "jars").glob("*.jar"))


def test_a_damaged_archive_is_fetched_again(repository: Path, tmp_path: Path) -> None:
    (jar,) = fetch([ONE], tmp_path / "jars", pins=pin_of(ONE))
    jar.write_bytes(b"damaged")
    (again,) = fetch([ONE], tmp_path / "jars", pins=pin_of(ONE))
    assert again.read_bytes() == ONE.encode()


def test_an_archive_that_does_not_exist_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(JarError, match=r"(?s)cannot fetch Java archives.*org\.example#three;3\.0"):
        fetch(["org.example:three:3.0"], tmp_path / "jars")


def test_several_processes_may_fetch_at_once(repository: Path, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(3) as pool:
        found = pool.starmap(fetch, [([ONE], tmp_path / "jars")] * 3)
    assert found == [[tmp_path / "jars" / "one-1.0.jar"]] * 3
    assert not list((tmp_path / "jars").glob("fetch-*"))


def test_missing_java_is_said_at_once(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_java(monkeypatch)
    with pytest.raises(ConfigError, match="java is not found: install a Java 17 runtime"):
        fetch([ONE], tmp_path / "jars")


def test_every_archive_of_the_broker_is_pinned() -> None:
    pins = read_pins(Path(jars.__file__).with_name("kafka_jars.txt"))
    assert "org.apache.kafka:kafka_2.13:4.1.1" in pins
    assert all(len(digest) == 64 and len(one.split(":")) == 3 for one, digest in pins.items())

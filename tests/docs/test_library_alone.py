"""`ingestd-paimon` works where neither Spark nor the Kafka client is installed."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.support.code_blocks import shown
from tests.support.java import compiled_classes, spark_jars
from tests.support.native_tables import native_table
from tests.support.oracle import SOURCES
from tests.support.pypaimon import environment

ROOT = Path(__file__).resolve().parents[2]
DAEMON_ONLY = (
    "confluent_kafka", "msgspec", "prometheus_client", "py4j", "pydantic", "pydantic_settings",
    "pyspark", "rich", "sqlglot", "typer", "yaml",
)  # fmt: skip
OF_THE_DAEMON = (
    "bucket_modes", "changelog_ingest", "data_views", "moving_keys", "ordering", "rest_catalog",
    "rest_command_line", "scan_options", "takeover",
)  # fmt: skip
"""Tests of compat that start the daemon, its command line or its ingest stages."""
READ_BY_TESTS = (
    "pyproject.toml",
    "README.md",
    "docs/compatibility.json",
    "docs/iceberg.md",
    "bench/peers/flink_jars.txt",
)
TOOLS = "import ingestd; ingestd.__path__.append({folder!r})\n"
"""Fetching and compiling Java's judges is in modules of the daemon's distribution."""


def library_wheel(folder: Path) -> Path:
    builder = WheelBuilder(str(ROOT / "paimon"))
    return Path(next(iter(builder.build(directory=str(folder)))))


def run(python: Path, *arguments: str, folder: Path, **more: str) -> str:
    """Standard output; what a test prints is shown at once."""
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "INGESTD_LONG")
    outside = {k: v for k, v in os.environ.items() if k not in left_out}
    done = subprocess.run(
        [str(python), *arguments],
        cwd=folder,
        env={**outside, **more},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0
    return done.stdout


def test_every_module_of_the_wheel_imports_without_what_only_the_daemon_requires(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(library_wheel(tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    program = f"""
import importlib, pkgutil, sys
sys.path.insert(0, {str(tmp_path / "site")!r})
sys.modules |= dict.fromkeys({DAEMON_ONLY!r})  # importing them is an ImportError
import ingestd
names = [one.name for one in pkgutil.walk_packages(ingestd.__path__, "ingestd.")]
for name in names:
    importlib.import_module(name)
assert ingestd.__file__.startswith({str(tmp_path)!r})
print(len(names))
"""
    assert int(run(Path(sys.executable), "-c", program, folder=tmp_path)) > 200


def test_the_program_of_its_page_reads_and_writes(tmp_path: Path) -> None:
    native_table(tmp_path, [("id", "BIGINT"), ("status", "STRING")], keys=["id"])
    (tmp_path / "db.db" / "t").rename(tmp_path / "db.db" / "orders")
    program = shown("paimon/README.md", "import ingestd.paimon").text
    program += "\nprint(orders.to_arrow().to_pylist())"
    program = program.replace("/data/warehouse/ods.orders", f"{tmp_path}/db.orders")
    said = run(Path(sys.executable), "-c", program, folder=ROOT)
    assert said == "[{'id': 7, 'status': 'new'}]\n"


@pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="some minutes: make library")
@pytest.mark.timeout(3000)
def test_its_tests_pass_in_an_environment_without_spark_and_kafka(tmp_path: Path) -> None:
    """Judges too, which are processes: Java with PySpark's jars, pypaimon in its environment."""
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    install = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    lock = str(ROOT / "paimon" / "requirements-dev.lock")
    run(python, *install, "--require-hashes", "-r", lock, folder=tmp_path)
    wheel = f"ingestd-paimon[hdfs] @ {library_wheel(tmp_path).as_uri()}"
    run(python, *install, "--no-index", wheel, folder=tmp_path)
    absent = (
        "import importlib.util as u; print([*map(u.find_spec, ['pyspark', 'confluent_kafka'])])"
    )
    assert run(python, "-c", absent, folder=tmp_path) == "[None, None]\n"

    copy = tmp_path / "copy"
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=leave)
    for name in READ_BY_TESTS:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    tools = tmp_path / "tools"
    (tools / "dev").mkdir(parents=True)
    for name in ("__init__.py", "jars.py", "java_classes.py"):
        shutil.copy(ROOT / "ingestd" / "dev" / name, tools / "dev")
    (site,) = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    (site / "tools.pth").write_text(TOOLS.format(folder=str(tools)))
    compiled_classes(SOURCES)
    environment("pypaimon")
    left_out = [f"--ignore=tests/compat/test_{name}.py" for name in OF_THE_DAEMON]
    tests = ["tests/unit/paimon", "tests/compat", *left_out]
    pytest_run = ("-m", "pytest", "-q", "--randomly-seed=1", "--numprocesses=2", "--dist=loadfile")
    jars = str(spark_jars())
    said = run(python, *pytest_run, *tests, folder=copy, INGESTD_SPARK_JARS=jars)
    assert " passed" in said
    assert "skipped" not in said

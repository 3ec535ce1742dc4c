"""The archive of classes, made by a real session, and judged by the JVM that it is made for.

The archive is the one that all daemons of this machine use; it is made if there is none.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.spark.startup.jvm import class_archive_path

pytestmark = pytest.mark.integration
TRAINING = (sys.executable, "-m", "ingestd.spark.startup.training")
SESSION = """
import sys
from ingestd.spark.startup.session import build_session
from ingestd.spark.startup.settings import JVM_OPTIONS

session = build_session("judged", {JVM_OPTIONS: f"-Xlog:class+load:file={sys.argv[1]}"})
print(session.sparkContext.parallelize([1, 2, 3], 1).count())
session.stop()
"""


def output(command: tuple[str, ...]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_jvm_takes_its_spark_classes_from_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    file = class_archive_path()
    assert file is not None
    assert output(TRAINING) == f"{file}\n"
    made = file.stat()

    loads = tmp_path / "loads"
    assert output((sys.executable, "-c", SESSION, str(loads))) == "3\n"
    lines = [line for line in loads.read_text().splitlines() if " org.apache.spark." in line]
    classes = [line for line in lines if "$Lambda" not in line]  # made while it runs
    elsewhere = [line for line in classes if "source: shared objects file (top)" not in line]
    assert len(classes) > 1000
    assert len(elsewhere) < 0.02 * len(classes), elsewhere[:20]

    assert output(TRAINING) == f"{file}\n"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (made.st_ino, made.st_mtime_ns)

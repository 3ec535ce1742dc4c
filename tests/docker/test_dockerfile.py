"""No image can be built here: its commands are run in an empty folder, and its text is read."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ingestd.dev.jars import cache_folder
from tests.support.code_blocks import shown
from tests.support.dockerfile import ROOT, Stage, parse, run_stages

HADOLINT = Path(__file__).with_name("hadolint.lock")
STAGES = parse((ROOT / "Dockerfile").read_text())
FINAL = STAGES[-1]
MOST_MEGABYTES = 900

# Its stages make two environments and compile.
pytestmark = pytest.mark.timeout(2400)


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    """A folder in which the stages up to `build` have run."""
    if shutil.which("cargo") is None:
        pytest.skip("the image's extension is built with cargo, which is not on this machine")
    last = next(number for number, stage in enumerate(STAGES) if stage.name == "build")
    with tempfile.TemporaryDirectory() as folder:
        run_stages(STAGES[: last + 1], Path(folder))
        yield Path(folder)


def hadolint() -> Path:
    """The linter's program, fetched once by hash into the user's cache."""
    digest = hashlib.sha256(HADOLINT.read_bytes()).hexdigest()[:16]
    home = cache_folder() / "hadolint" / digest
    if not (home / "bin" / "hadolint").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "--target", str(home), "-r", str(HADOLINT)], check=True)
    return home / "bin" / "hadolint"


@pytest.mark.integration
def test_the_linter_has_nothing_to_say() -> None:
    done = subprocess.run(
        [str(hadolint()), str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.image)
def test_base_images_have_an_exact_version_and_a_digest(stage: Stage) -> None:
    names = {earlier.name for earlier in STAGES[: STAGES.index(stage)]}
    pinned = r"[a-z-]+:\d+\.\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}"
    assert stage.image in names or re.fullmatch(pinned, stage.image)


def test_the_container_runs_the_daemon_as_nobody_in_particular() -> None:
    assert FINAL.values("USER") == ["10001:10001"]
    assert json.loads(FINAL.values("ENTRYPOINT")[0]) == ["/opt/ingestd/bin/ingestd"]
    arguments = ["run", "-c", "/etc/ingestd/ingestd.yaml", "--take-over"]
    assert json.loads(FINAL.values("CMD")[0]) == arguments
    assert FINAL.values("STOPSIGNAL") == ["SIGTERM"]


def test_the_last_stage_downloads_nothing() -> None:
    for command in FINAL.values("RUN"):
        assert not re.search(r"\b(pip|apt|apt-get|curl|wget)\b", command)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_container_is_as_healthy_as_its_page_says(status: int, code: int) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/livez" else 404)
            self.end_headers()

    (check,) = FINAL.values("HEALTHCHECK")
    program, *arguments = json.loads(check.partition("CMD ")[2])
    assert program == "/opt/ingestd/bin/python"
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever).start()
        here = [argument.replace(":8080", f":{server.server_port}") for argument in arguments]
        done = subprocess.run([sys.executable, *here], capture_output=True, check=False)
        server.shutdown()
    assert done.returncode == code


def test_a_read_only_root_is_enough() -> None:
    (environment,) = FINAL.values("ENV")
    assert "HOME=/tmp" in environment
    assert "SPARK_LOCAL_DIRS=/tmp" in environment
    assert "PYTHONDONTWRITEBYTECODE=1" in environment


def test_the_archive_of_classes_is_made_where_the_daemon_looks_for_it() -> None:
    (environment,) = FINAL.values("ENV")
    steps = [kind for kind, _ in FINAL.steps]
    assert "INGESTD_CLASS_ARCHIVE=/opt/ingestd/classes" in environment
    assert FINAL.values("RUN")[-1] == "/opt/ingestd/bin/python -m ingestd.spark.startup.training"
    assert steps.index("ENV") < len(steps) - 1 - steps[::-1].index("RUN") < steps.index("USER")


def test_the_archive_of_classes_is_made_as_the_page_says() -> None:
    """The page's two lines are those of the project's own image, which the test above judges."""
    said = dict(
        line.split(maxsplit=1) for line in shown("docs/deployment.md", "ENV").text.splitlines()
    )
    (environment,) = FINAL.values("ENV")
    assert said["ENV"] in environment
    assert FINAL.values("RUN")[-1].endswith(said["RUN"].removeprefix("python"))


def test_what_is_copied_is_let_through_to_the_builder() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }
    copied = {
        source
        for stage in STAGES
        for text in stage.values("COPY")
        if not text.startswith("--from")
        for source in text.split()[:-1]
    }
    assert copied == allowed


@pytest.mark.integration
@pytest.mark.slow
def test_the_build_makes_a_program_that_starts(built: Path) -> None:
    program = json.loads(FINAL.values("ENTRYPOINT")[0])
    done = subprocess.run(
        [str(built / program[0].lstrip("/")), *program[1:], "--help"],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "executor" in done.stdout


@pytest.mark.integration
@pytest.mark.slow
def test_what_the_image_adds_to_its_base_is_known_and_bounded(built: Path) -> None:
    packages = next((built / "opt" / "ingestd" / "lib").glob("python3.*")) / "site-packages"
    parts = {path.name: size(path) for path in packages.iterdir()}
    largest = sorted(parts.items(), key=lambda part: -part[1])[:8]
    total = size(built / "opt" / "ingestd")
    print("", f"/opt/ingestd {total} MB", *(f"{name} {mb} MB" for name, mb in largest), sep="\n")
    assert total < MOST_MEGABYTES


def size(place: Path) -> int:
    """Megabytes of a file, or of all in a folder."""
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file()) >> 20


@pytest.mark.integration
@pytest.mark.slow
def test_the_image_holds_locked_packages_and_no_tools_to_install_more(built: Path) -> None:
    packages = next((built / "opt" / "ingestd" / "lib").glob("python3.*")) / "site-packages"
    names = {path.name.split("-")[0].lower() for path in packages.glob("*.dist-info")}
    assert {"pyspark", "pyarrow", "confluent_kafka", "ingestd", "ingestd_native"} <= names
    assert not {"pip", "setuptools", "pytest", "mypy", "ruff"} & names
    assert list((packages / "pyspark" / "jars").glob("spark-core_*.jar"))

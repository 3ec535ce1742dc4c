"""`.ci/audit-images`: every base image goes to the scanner, and no answer is no pass.

The scanner is a stand-in, since images and its database are in a network; what it is asked is real.
"""

import subprocess
from pathlib import Path

import pytest

from docs.sbom import ROOT
from tests.support.dockerfile import parse

SCANNER = """#!/bin/sh
for image; do :; done
echo "$image" >>"$0.asked"
case " $* " in *" --exit-code 10 "*) ;; *) exit 2 ;; esac
case $image in
  vulnerable*) echo CVE-1; exit 10 ;;
  unreachable*) exit 1 ;;
esac
"""
DIGEST = f"@sha256:{'a' * 64}"


def audit(dockerfile: Path, scanner: Path | None) -> subprocess.CompletedProcess[str]:
    path = f"{scanner.parent}:/usr/bin:/bin" if scanner else "/usr/bin:/bin"
    command = [str(ROOT / ".ci" / "audit-images"), str(dockerfile)]
    environment = {"PATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def scanner(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "trivy"
    program.parent.mkdir()
    program.write_text(SCANNER)
    program.chmod(0o755)
    return program


def asked(scanner: Path) -> list[str]:
    return scanner.with_name("trivy.asked").read_text().split()


def test_each_base_image_of_the_dockerfile_is_scanned_once(scanner: Path) -> None:
    done = audit(ROOT / "Dockerfile", scanner)
    assert (done.returncode, done.stderr) == (0, "")
    stages = parse((ROOT / "Dockerfile").read_text())
    bases = {stage.image for stage in stages} - {stage.name for stage in stages}
    assert asked(scanner) == sorted(bases)
    assert len(bases) == 3


@pytest.mark.parametrize(
    ("image", "code", "said"),
    [
        (f"fine:1{DIGEST}", 0, ""),
        (f"vulnerable:1{DIGEST}", 1, "CVE-1"),
        (f"unreachable:1{DIGEST}", 3, "NOT AUDITED: unreachable:1"),
        ("fine:1", 1, "fine:1 has no digest"),
    ],
)
def test_the_exit_code_says_what_is_known(
    image: str, code: int, said: str, scanner: Path, tmp_path: Path
) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(f"FROM {image} AS one\nFROM one\nFROM good:1{DIGEST}\n")
    done = audit(file, scanner)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert f"good:1{DIGEST}" in asked(scanner)


def test_a_vulnerable_image_outweighs_one_without_an_answer(scanner: Path, tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(f"FROM unreachable:1{DIGEST}\nFROM vulnerable:1{DIGEST}\n")
    assert audit(file, scanner).returncode == 1


def test_without_a_scanner_nothing_is_known(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(f"FROM fine:1{DIGEST}\n")
    done = audit(file, None)
    assert done.returncode == 3
    assert "trivy is not on the PATH" in done.stderr


def test_a_file_without_base_images_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("RUN true\n")
    assert audit(tmp_path / "Dockerfile", None).returncode == 3

"""Just enough of a Dockerfile's grammar to read one and to run a stage in an ordinary folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUST = ("cargo", "rustup")
UNOPTIMIZED = "[profile.release.package.ingestd-native]\nopt-level = 0\ncodegen-units = 16\n"
"""Cargo reads it in a folder above the sources: the extension is built in a fifth of the time."""
ABSOLUTE = re.compile(r"(?<![\w./-])/(opt|src)(?=/|\b)")


@dataclass(slots=True)
class Stage:
    """One FROM and what follows it."""

    image: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def values(self, instruction: str) -> list[str]:
        """Arguments of all instructions of one kind."""
        return [text for kind, text in self.steps if kind == instruction]


def parse(text: str) -> list[Stage]:
    """The stages of a Dockerfile."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stages: list[Stage] = []
    for line in filter(str.strip, joined.splitlines()):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            image, _, name = rest.partition(" AS ")
            stages.append(Stage(image.strip(), name.strip()))
        else:
            stages[-1].steps.append((instruction, rest.strip()))
    return stages


def run_stages(stages: Sequence[Stage], root: Path) -> None:
    """Run the stages' COPY and RUN with `root` in the place of the root of each container.

    Only /opt and /src are moved, and shared by all stages; the command `python` is the one that
    runs the tests, `cargo` the one on this machine's path. Wheels that pip has built before and
    crates that this tree has compiled are taken from their caches: a container has none. The
    extension itself is not optimized.
    """
    tools = root / "tools"
    tools.mkdir(parents=True)
    (tools / "python").symlink_to(getattr(sys, "_base_executable", sys.executable))
    rust = Path(shutil.which("cargo") or "").parent
    environment = {"PATH": f"{tools}:{rust}:/usr/bin:/bin", "HOME": str(root)}
    environment |= {f"{name.upper()}_HOME": str(Path.home() / f".{name}") for name in RUST}
    kept = ("PIP_", "SSL_", "CARGO_", "RUSTUP_")
    environment |= {k: v for k, v in os.environ.items() if k.startswith(kept)}
    environment.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    (root / "opt").mkdir()
    (ROOT / "build" / "native").mkdir(parents=True, exist_ok=True)
    (root / "opt" / "native").symlink_to(ROOT / "build" / "native")
    (root / ".cargo").mkdir()
    (root / ".cargo" / "config.toml").write_text(UNOPTIMIZED)
    for stage in stages:
        _run_stage(stage, root, environment)


def _run_stage(stage: Stage, root: Path, environment: dict[str, str]) -> None:
    here = root / "src"
    for instruction, text in stage.steps:
        if instruction == "WORKDIR":
            here = root / text.lstrip("/")
            here.mkdir(parents=True, exist_ok=True)
        elif instruction == "ENV":
            environment |= dict(part.split("=", 1) for part in shlex.split(text))
            environment.pop("PIP_NO_CACHE_DIR", None)
        elif instruction == "COPY" and text.startswith("--from="):
            _, source, target = shlex.split(text)
            assert source == target, "stages share their folders here"
        elif instruction == "COPY":
            _copy(shlex.split(text), here)
        elif instruction == "RUN":
            _run(moved(text, root), here, environment)
        else:
            raise AssertionError(
                f"the build stage has an instruction not known here: {instruction}"
            )


def moved(text: str, root: Path) -> str:
    """A command line with the container's folders replaced by those under `root`."""
    return ABSOLUTE.sub(lambda match: f"{root}/{match[1]}", text)


def _copy(arguments: list[str], here: Path) -> None:
    *sources, target = arguments
    for source in sources:
        place = here / target / Path(source).name if target.endswith("/") else here / target
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "target")
            shutil.copytree(ROOT / source, place, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / source, place)


def _run(command: str, here: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        cwd=here,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}"

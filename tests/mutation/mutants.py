"""Judges the tests by mutants: small random changes of the code, each of which a test should fail.

    python -m tests.mutation.mutants --count 200 --seed 1 [--again]

Works in a copy of the tree (`build/mutants/tree`). The tests run there once and record which
functions each of them calls. Then each mutant is judged by the tests that call the changed
function or whose file imports its module: first, for at most three minutes, those of its package,
then the unit, property and recovery tests of its layer. `results-SEED.jsonl` holds the verdicts,
and a run that was interrupted continues. `--again` takes over changed tests and judges survivors
again.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.mutation.operators import Mutation, mutations

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutants"
TREE = FOLDER / "tree"
CALLS = FOLDER / "calls.jsonl"
TABLE = "paimon/table/"
AREAS = {
    "commit": (f"{TABLE}commit", f"{TABLE}write", f"{TABLE}metadata/catalog_commit.py"),
    "recovery": ("ingest/recovery", "ingest/tables"),
    "merge": ("paimon/merge",),
    "decode": ("cdc",),
    "index": (
        f"{TABLE}buckets",
        f"{TABLE}cross_partition",
        f"{TABLE}metadata/index_entries.py",
        f"{TABLE}files/deletion_vectors.py",
        f"{TABLE}files/data_file_indexes.py",
        f"{TABLE}rewrite/index_repair.py",
        *(f"paimon/spec/{name}.py" for name in ("index_manifest", "file_index")),
        *(f"paimon/spec/file_index_{name}.py" for name in ("bitmap", "bloom", "bsi", "range")),
    ),
    "maintenance": (f"{TABLE}compact", f"{TABLE}retention", "ingest/maintenance"),
}
_RECOVERY = tuple(f"tests/chaos/test_{name}.py" for name in ("truth", "driver_lives", "lost_logs"))
"""Tests of recovery that need no other process."""
LAYERS = {
    "cdc": ("tests/unit/cdc/", "tests/property/"),
    "ingest": ("tests/unit/ingest/", "tests/property/", "tests/recovery/", *_RECOVERY),
    "paimon": ("tests/unit/paimon/", "tests/property/"),
}
PACKAGE_SECONDS, LAYER_SECONDS = 180, 900
MEMORY = 6 << 30


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutation of a file of the tree; `path` is relative to the tree."""

    number: int
    area: str
    path: str
    mutation: Mutation


@dataclass(frozen=True, slots=True)
class RecordedTest:
    """What is known of a test: its id, seconds, and functions (`path:qualified name`)."""

    test: str
    passed: bool
    seconds: float
    calls: frozenset[str]


def copy_tree(*folders: str) -> list[str]:
    """Copy the files below the folders that differ; return their paths."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    changed = []
    for name in sorted({*listed.split("\0")} - {""}):
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            target.unlink(missing_ok=True)
        elif not target.exists() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            changed.append(name)
    return changed


def run_tests(paths: Sequence[str], seconds: float | None, **environment: str) -> tuple[int, str]:
    """Run pytest in the tree; return its exit code (-1: out of time) and its output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    command += ["-p", "tests.mutation.called", "--tb=line", f"--basetemp={FOLDER / 'tmp'}", *paths]
    with subprocess.Popen(
        command,
        cwd=TREE,
        env={**os.environ, "PYTHONPATH": str(TREE), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
        text=True,
        errors="replace",
    ) as running:
        try:
            output, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return -1, ""
    return running.returncode, output


def recorded_tests() -> list[RecordedTest]:
    """Return the tests that pass without a mutation; the last record of a test counts."""
    lines: dict[str, RecordedTest] = {}
    with CALLS.open() as file:
        for line in map(json.loads, file):
            lines[line["test"]] = RecordedTest(**{**line, "calls": frozenset(line["calls"])})
    return [test for test in lines.values() if test.passed]


def chosen_mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Choose mutants by a seed, the same number in each area."""
    places = {
        area: [
            (path, mutation)
            for name in names
            for path in python_files(TREE / "ingestd" / name)
            for mutation in mutations(path.read_text())
        ]
        for area, names in AREAS.items()
    }
    for area, choices in places.items():
        random.Random(f"{seed} {area}").shuffle(choices)
    for number in range(count):
        area = [*AREAS][number % len(AREAS)]
        path, mutation = places[area][number // len(AREAS)]
        yield Mutant(number, area, str(path.relative_to(TREE)), mutation)


def python_files(path: Path) -> list[Path]:
    """Return the modules at or below a path, sorted."""
    return [path] if path.suffix else sorted(path.rglob("*.py"))


def judges(mutant: Mutant, tests: Sequence[RecordedTest]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield (package, tests) and (layer, tests): those that may notice, the nearest first."""
    package, module = mutant.path.removesuffix(".py").replace("/", ".").rsplit(".", 1)
    function = f"{mutant.path}:{mutant.mutation.function or ''}"
    anywhere = mutant.mutation.function is None
    texts = {
        file: (TREE / file).read_text()
        for file in {test.test.split("::")[0] for test in tests}
        if file.startswith(LAYERS[package.split(".")[1]])
    }
    names = re.compile(rf"{re.escape(package)}(\.| import .*\b){module}\b")
    own = f"tests/unit/{package.partition('.')[2].replace('.', '/')}/"
    importing = {file for file, text in texts.items() if names.search(text)}
    near, far = [], []
    for test in tests:
        file = test.test.split("::")[0]
        called = function in test.calls or (
            anywhere and any(call.startswith(function) for call in test.calls)
        )
        if file in importing or (file in texts and called):
            share = near if file.startswith(own) or package in texts[file] else far
            share.append((file not in importing, test.seconds, test.test))
    yield "package", {name: seconds for _, seconds, name in sorted(near)}
    yield "layer", {name: seconds for _, seconds, name in sorted(far)}


def judge(mutant: Mutant, tests: Sequence[RecordedTest]) -> tuple[str, str]:
    """Return who killed a mutant ("package", "layer" or "survived"), and the test."""
    path = TREE / mutant.path
    source, times = path.read_text(), path.stat()
    path.write_text(mutant.mutation.apply(source))
    note = ""
    try:
        for part, chosen in judges(mutant, tests):
            if not chosen:
                continue
            (FOLDER / "chosen.json").write_text(json.dumps(chosen))
            code, output = run_tests(
                ["-x", *dict.fromkeys(name.split("::")[0] for name in chosen)],
                PACKAGE_SECONDS if part == "package" else LAYER_SECONDS,
                INGESTD_CHOSEN_TESTS=str(FOLDER / "chosen.json"),
            )
            if code == -1:
                note = f"out of time in {part}"
            elif code not in {0, 5}:
                found = re.search(r"^(?:FAILED|ERROR) ([^\n]*?)(?: - |$)", output, re.MULTILINE)
                return part, found[1] if found else output[-200:]
        return "survived", note
    finally:
        path.write_text(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def table(results: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the verdicts as a table of Markdown and their sums by area."""
    lines = ["| # | file:line | operator | change | verdict | test |", "|---|---|---|---|---|---|"]
    for number, result in sorted(results.items()):
        change = " ".join(f"`{result['old']}` to `{result['new']}`".replace("|", "\\|").split())
        lines.append(
            f"| {number} | {result['path']}:{result['line']} | {result['operator']} | {change}"
            f" | {result['verdict']} | {result['test']} |"
        )
    sums = Counter((result["area"], result["verdict"]) for result in results.values())
    for area in (*AREAS, "all"):
        row = [
            sum(n for (a, v), n in sums.items() if area in {a, "all"} and v == verdict)
            for verdict in ("package", "layer", "survived")
        ]
        share = 100 * (row[0] + row[1]) / max(1, sum(row))
        lines.append(f"{area}: {sum(row)} mutants, by package {row[0]}, by layer {row[1]},"
                     f" survived {row[2]}, {share:.0f} % killed")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Choose mutants, judge them, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="changed tests, survivors again")
    options = parser.parse_args()
    results_file = FOLDER / f"results-{options.seed}.jsonl"
    changed = copy_tree("tests") if options.again else copy_tree()
    folders = sorted({folder for layer in LAYERS.values() for folder in layer})
    stale = [
        name for name in changed if re.match(rf"({'|'.join(folders)})(.*test_\w+\.py)?$", name)
    ]
    if any(name.startswith("ingestd/") for name in changed):
        CALLS.unlink(missing_ok=True)
        results_file.unlink(missing_ok=True)
    if stale or not CALLS.exists():
        run_tests(stale if CALLS.exists() else folders, None, INGESTD_CALLS_TO=str(CALLS))
    tests = recorded_tests()
    results: dict[int, dict[str, Any]] = {}
    if results_file.exists():
        results = {line["number"]: line for line in map(json.loads, results_file.open())}
    for mutant in chosen_mutants(options.count, options.seed):
        before = results.get(mutant.number)
        if before and not (options.again and before["verdict"] == "survived"):
            continue
        source = (TREE / mutant.path).read_text()
        verdict, test = judge(mutant, tests)
        change = mutant.mutation
        line = {**asdict(change), "number": mutant.number, "area": mutant.area, "path": mutant.path}
        old = source[change.start : change.end]
        line |= {"old": old, "new": change.text, "verdict": verdict, "test": test}
        results[mutant.number] = line
        with results_file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{mutant.number}: {mutant.path}:{change.line} {verdict} {test}", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()

"""A coverage-guided fuzzer over the decoder of one data format, by atheris (libFuzzer).

python -m tests.fuzz.guided FORMAT [--seconds N] [--corpus FOLDER]

Guided by the branches of the decoders in Python, and of the native reader if it was built to count
them. A finding is kept as a regression sample and ends the run with exit code 1. `make fuzz` sees
to it that everything is there.
"""

import argparse
import hashlib
import importlib
import os
import sys
import traceback
from pathlib import Path
from random import Random
from typing import Any

import atheris  # type: ignore[import-not-found]

_LIMITS = ("-timeout=60", "-rss_limit_mb=4096", "-max_len=200000", "-print_final_stats=1")


class Fuzzer:
    """Cases of one data format, as bytes with the number of a seed before them."""

    def __init__(self, data_format: str) -> None:
        with atheris.instrument_imports(include=["ingestd.cdc"]):
            self._cases: Any = importlib.import_module("tests.fuzz.cases")
            self._judge = importlib.import_module("tests.fuzz.verdict").judge
            self._seeds = importlib.import_module("tests.fuzz.seeds").seeds(data_format)

    def start(self, folder: Path) -> None:
        """Write the seeds, as a corpus to begin with."""
        for number, case in enumerate(self._seeds):
            data = bytes([number]) + self._cases.packed(case)
            (folder / f"seed-{number}").write_bytes(data)

    def _case(self, data: bytes) -> Any:
        number = data[0] if data else 0
        return self._cases.unpacked(data[1:], self._seeds[number % len(self._seeds)])

    def mutate(self, data: bytes, limit: int, seed: int) -> bytes:
        """The bytes of a case with a change or more; what would be longer than `limit` stays."""
        random = Random(seed)
        changed = self._cases.irregular(random, self._case(data), random.choice((1, 1, 1, 2, 4)))
        found = (data[:1] or b"\0") + self._cases.packed(changed)
        return found if len(found) <= limit else data

    def run(self, data: bytes) -> None:
        """Judge the case of the bytes; what it does not stand is kept, and ends the run."""
        case = self._case(data)
        try:
            self._judge(case)
        except BaseException as error:  # noqa: BLE001  (a panic of the native reader is none other)
            traceback.print_exc()
            name = hashlib.sha256(data).hexdigest()[:10]
            why = f"{type(error).__name__}: {error}"[:200]
            sys.stderr.write(f"kept as {self._cases.save(case, name, why)}\n")
            sys.stderr.flush()
            os._exit(1)


def main(arguments: list[str]) -> None:
    """Fuzz one data format for some time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("format")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz/corpus"))
    wanted = parser.parse_args(arguments)
    folder = wanted.corpus / wanted.format
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Fuzzer] = []
    atheris.Setup(
        [sys.argv[0], *_LIMITS, f"-max_total_time={wanted.seconds}", str(folder)],
        lambda data: made[0].run(data),
        custom_mutator=lambda data, limit, seed: made[0].mutate(data, limit, seed),
    )
    made.append(Fuzzer(wanted.format))
    made[0].start(folder)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])

"""Buckets and options for the planner of compaction, and what our planner and Java's make of them.

Java's picks of the cases of `SEED` are kept in `tests/golden/compaction_picks.txt`, which is

    python -m tests.support.pick_cases

written again. Its first word is a digest of the cases that the picks are of.
"""

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from ingestd.paimon.spec.compaction_options import CompactionOptions, OffPeak, compaction_options
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.compact.universal_compaction import (
    CompactionPick,
    PlanningTime,
    RunSize,
    pick_full,
    pick_runs,
)
from tests.support.oracle import Oracle

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "compaction_picks.txt"
SEED, COUNT = 20, 8000
_NOW = 1_700_000_000_000
_WIDTH = 100
_LARGEST = 10**13
"""Bytes of a run; beyond, sizes in percent can be more than Java's numbers hold."""
_SCHEMA = new_schema([("k", parse_type("INT"))], ["k"], [], {"bucket": "1"}, 0)
_DEFAULTS = compaction_options(_SCHEMA)
Case = dict[str, Any]


def cases(seed: int, count: int) -> Iterator[Case]:
    """Many buckets, among them such whose sizes are at or next to a limit."""
    random = Random(seed)
    for _ in range(count):
        yield _case(random)


def own_pick(case: Case) -> str:
    """What our planner makes of a case, as Java's answer is written."""
    runs = [RunSize(level, size) for level, size in case["runs"]]
    top = case["levels"] - 1
    if case["full"]:
        return _text(pick_full(runs, top))
    options, moment = _options(case), PlanningTime(case["now"], case["hour"], case["last"])
    if case["gentle"] is None:
        return _text(pick_runs(runs, top, options, moment))
    for count in range(1, len(runs)):
        choice = pick_runs(runs[-count:], top, options, moment)
        if choice is not None:
            return f"{count}={_text(choice)}"
    return f"{len(runs)}={_text(pick_runs(runs, top, options, moment))}"


def digest(given: Sequence[Case]) -> str:
    """What the cases are, in a few letters."""
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()[:16]


def golden_picks() -> tuple[str, list[str]]:
    """The digest of the cases, and Java's pick of each."""
    first, *picks = GOLDEN.read_text(encoding="utf-8").split()
    return first, picks


def _case(random: Random) -> Case:
    gentle = random.random() < 0.05
    trigger = random.choice([1, 2, 3, 4, 5, 5, 5, 6, 8])
    ratio, amplification = random.choice([0, 1, 1, 1, 7, 50, 300]), _amplification(random)
    levels = max(2, random.choice([trigger + 1, trigger + 1, 2, 3, 12]))
    return {
        "runs": _runs(random, levels, ratio, amplification, level_0=gentle),
        "levels": levels,
        "trigger": trigger,
        "ratio": ratio,
        "amplification": amplification,
        "forced": gentle or random.random() < 0.4,
        "gentle": max(trigger, random.choice([2, 4, 8])) if gentle else None,
        "off_peak": _off_peak(random) if random.random() < 0.3 else None,
        "hour": random.randrange(24),
        "full": not gentle and random.random() < 0.02,
        "now": _NOW,
        **_early(random, random.random() < 0.35 and not gentle),
    }


def _amplification(random: Random) -> int:
    return random.choice([0, 10, 200, 200, 200, 1000, 100_000])


def _runs(
    random: Random, levels: int, ratio: int, amplification: int, *, level_0: bool
) -> list[tuple[int, int]]:
    """Levels and sizes from the newest run to the oldest."""
    higher = [level for level in range(1, levels) if random.random() < random.choice([0.2, 0.8])]
    places = [0] * random.randrange(10) + ([] if level_0 else higher)
    if level_0 and not places:
        places = [0]
    most = random.choice([3, 100, 10**6, 10**12])
    sizes: list[int] = []
    for number in range(len(places)):
        newer = sum(sizes)
        size = random.randrange(most)
        if sizes and random.random() < 0.5:
            # Next to what is just not too large for the size ratio.
            size = newer * (100 + ratio) // 100 + random.choice([-1, 0, 0, 1, 2])
        if number == len(places) - 1 and amplification and random.random() < 0.4:
            size = newer * 100 // amplification + random.choice([-1, 0, 1])
        sizes.append(min(max(size, 0), _LARGEST))
    return list(zip(places, sizes, strict=True))


def _off_peak(random: Random) -> tuple[int, int, int]:
    return random.randrange(24), random.randrange(24), random.choice([0, 5, 40, 1000])


def _early(random: Random, asked: bool) -> dict[str, int | None]:
    """The options of early full compactions, and when the last full compaction was."""
    interval = random.choice([None, 1000, 3_600_000])
    since = random.choice([999, 1000, 1001, 3_600_000, 3_600_001])
    most = random.choice([1, 100, 10**6, 10**12])
    return {
        "interval": interval if asked else None,
        "last": random.choice([None, _NOW - since]) if asked else None,
        "total": random.choice([None, random.randrange(most)]) if asked else None,
        "incremental": random.choice([None, random.randrange(most)]) if asked else None,
    }


def _options(case: Case) -> CompactionOptions:
    given = case["off_peak"]
    # Hours that begin where they end are none.
    off_peak = OffPeak(*given) if given and given[0] != given[1] else None
    return dataclasses.replace(
        _DEFAULTS,
        trigger=case["trigger"],
        size_ratio=case["ratio"],
        max_size_amplification=case["amplification"],
        forces_level_0=case["forced"],
        min_level_0_runs=case["gentle"] or 1,
        off_peak=off_peak,
        full_interval_ms=case["interval"],
        total_size=case["total"],
        incremental_size=case["incremental"],
    )


def _text(choice: CompactionPick | None) -> str:
    return "-" if choice is None else f"{choice.count}:{choice.output_level}"


def _lines(words: Sequence[str]) -> Iterator[str]:
    line = ""
    for word in words:
        if len(line) + len(word) >= _WIDTH:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    yield line


def main() -> None:
    """Ask Java, and keep what it says."""
    given = list(cases(SEED, COUNT))
    with Oracle() as oracle, tempfile.TemporaryDirectory() as scratch:
        picks = oracle.picks(given, Path(scratch))
    text = "\n".join([digest(given), *_lines(picks)]) + "\n"
    GOLDEN.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

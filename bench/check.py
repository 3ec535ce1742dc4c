"""The guard: whether ratios got worse than the stored ones, and which.

    python -m bench.check --log FILE

Only ratios are compared, each with that of the newest stored session that has it. Absolute times
are divided by the machine's yardstick of the same session first. What a row may lose is the spread
it had when it was stored, and at least a tenth.
"""

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.goals import Outcome, Record, outcomes
from bench.journal import Journal
from bench.report import SESSIONS, Stored, from_journal, load_sessions

LEAST_TOLERANCE = 0.10
UNKNOWN_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class Slower:
    """A row that got worse by more than it may."""

    title: str
    stored: float
    now: float
    tolerance: float

    def __str__(self) -> str:
        change = abs(self.now / self.stored - 1)
        return (
            f"{self.title}: {self.now:.3f}, stored {self.stored:.3f}: {change:.0%} worse, "
            f"{self.tolerance:.0%} is the spread"
        )


def slower(stored: Sequence[Stored], now: Sequence[Record]) -> list[Slower]:
    """Rows of `now` that are worse than the newest stored ones; others are left out.

    `stored` are sessions by date.
    """
    before: dict[str, tuple[Outcome, float]] = {}
    for session in stored:
        yardstick = _yardstick(session.records)
        measured = (outcome for outcome in outcomes(session.records) if outcome.values)
        before |= {outcome.goal.key: (outcome, yardstick) for outcome in measured}
    today = _yardstick(now)
    found = []
    for outcome in outcomes(now):
        if outcome.values and outcome.goal.key in before:
            earlier, then = before[outcome.goal.key]
            found.append(_compare(earlier, outcome, (then, today)))
    return [one for one in found if one is not None]


def _compare(before: Outcome, now: Outcome, yardsticks: tuple[float, float]) -> Slower | None:
    goal = now.goal
    then, today = (before.median, now.median)
    if goal.timed:
        then, today = then / yardsticks[0], today / yardsticks[1]
    if not then:
        return None
    allowed = tolerance(before.values)
    worse = today < then * (1 - allowed) if goal.at_least else today > then * (1 + allowed)
    title = f"{goal.title}, against {goal.against}" if goal.against else goal.title
    return Slower(title, then, today, allowed) if worse else None


def tolerance(values: Sequence[float]) -> float:
    """The share that a median may lose: the range of what was stored, and at least a tenth."""
    if len(values) < 2:
        return UNKNOWN_SPREAD
    middle = statistics.median(values)
    return max(LEAST_TOLERANCE, (max(values) - min(values)) / middle) if middle else UNKNOWN_SPREAD


def _yardstick(records: Sequence[Mapping[str, float]]) -> float:
    found = [float(record["yardstick_ms"]) for record in records if record.get("yardstick_ms")]
    return statistics.median(found) if found else 1.0


def main() -> int:
    """Compare a log with what is stored; status 1 when something got slower."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--log", type=Path, required=True, help="log of a session to compare")
    arguments.add_argument("--stored", type=Path, default=SESSIONS, help="folder of sessions")
    chosen = arguments.parse_args()
    now = from_journal(Journal(chosen.log))
    stored = [one for one in load_sessions(chosen.stored) if _events(one) == _events(now)]
    if not stored:
        print("loads of different sizes cannot be compared", file=sys.stderr)
        return 2
    found = slower(stored, now.records)
    for one in found:
        print(f"SLOWER  {one}")
    compared = sum(1 for outcome in outcomes(now.records) if outcome.values)
    print(f"{compared} rows compared with {len(stored)} sessions, {len(found)} slower")
    return 1 if found else 0


def _events(session: Stored) -> object:
    return session.header.get("sizes", {}).get("events")


if __name__ == "__main__":
    sys.exit(main())

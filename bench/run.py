"""The whole table of goals, measured: ours and the peers alternately, round by round.

    python -m bench.run [--quick] [--only MEASURE ...] [--subjects NAME ...] [--runs N] [--publish]

Every run adds a line to the log. A second call with the same log goes on where the first one was
interrupted and tries again what failed; --fresh begins again. --publish keeps the session below
bench/results/sessions and renews docs/performance.md.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.goals import outcomes
from bench.journal import Journal, Record, Slot
from bench.machine import description, load_average, yardstick_ms
from bench.measures import MEASURES, Measure, Session, Sizes
from bench.process import end_all_on_signals
from bench.report import failures, from_journal, load_sessions, store, write
from bench.topics import Topics
from ingestd.dev.broker import DevBroker

LOG = Path("build/bench/session.jsonl")
QUICK = Sizes(
    events=100_000,
    large=0,
    changes=20_000,
    latency_batches=20,
    tiny_batches=20,
    read_rows=100_000,
    compacted_rows=20_000,
    growth="quick",
    steady_seconds=5,
)
PATIENCE_SECONDS = 900.0
TOLD = 400


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be made."""

    measure: Measure
    slot: Slot


def jobs(measures: Sequence[Measure], subjects: Sequence[str], runs: int | None) -> Iterator[Job]:
    """All runs, so that every round sees every program and none is always first."""
    for number in range(max((measure.rounds for measure in measures), default=0)):
        for measure in measures:
            if number >= min(measure.rounds, runs or measure.rounds):
                continue
            names = [subject for subject in measure.subjects if not subjects or subject in subjects]
            for subject in names[number % 2 and None : None : -1 if number % 2 else 1]:
                yield Job(measure, Slot(measure.name, subject, measure.scale, number))


def chosen_measures(only: Sequence[str], sizes: Sizes) -> list[Measure]:
    """Measures by name or NAME/SCALE; those of the large load only when there is one."""
    return [
        measure
        for measure in MEASURES
        if (not only or {measure.name, f"{measure.name}/{measure.scale}"} & set(only))
        and (measure.scale != "large" or sizes.large)
    ]


class Runner:
    """Runs jobs on one broker, which is started again should it die."""

    def __init__(self, journal: Journal, sizes: Sizes, folder: Path, timeout: float) -> None:
        self._journal = journal
        self._sizes = sizes
        self._folder = folder
        self._timeout = timeout
        self._broker = DevBroker()
        self._session: Session | None = None

    def run(self, todo: Sequence[Job]) -> None:
        """Every job that the log does not hold yet."""
        try:
            for number, job in enumerate(todo, 1):
                if not self._journal.holds(job.slot):
                    self._show(
                        f"{number}/{len(todo)} {' '.join(map(str, asdict(job.slot).values()))}"
                    )
                    self._run(job)
        finally:
            self._broker.stop()

    def _run(self, job: Job) -> None:
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        before = {"at": begun, "load_before": load_average(), "yardstick_ms": yardstick_ms()}
        clock = time.monotonic()
        with ThreadPoolExecutor(1) as thread:  # whatever it raises is reported, nothing ends here
            task = thread.submit(self._measured, job)
            error = task.exception()
        found: list[Record] = [{"failed": _told(error)}]
        if error is None:
            found = task.result()
        for record in found:
            self._journal.add({**job.slot.document(), **before, **record})
            self._show(f"    {_brief(record)}  ({time.monotonic() - clock:.0f} s)")

    def _measured(self, job: Job) -> list[Record]:
        return job.measure.run(self._live_session(), job.slot.subject, job.slot.scale)

    def _live_session(self) -> Session:
        if self._session is None or not self._broker.running:
            self._broker.stop()
            self._broker = DevBroker()
            self._broker.start()
            self._session = Session(Topics(self._broker), self._folder, self._sizes, self._timeout)
        return self._session

    @staticmethod
    def _show(text: str) -> None:
        print(text, flush=True)


def _told(error: BaseException | None) -> str:
    """The kind of the error, and the begin and the end of what it says."""
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 2 * TOLD else f"{text[:TOLD]} ... {text[-TOLD:]}"


def _brief(record: Record) -> str:
    if "failed" in record:
        return f"FAILED {record['failed']}"
    if "not_built" in record:
        return f"not built yet: {record['not_built']}"
    if "per_s" in record:
        parts = [f"{record['per_s']:,.0f}/s"]
        parts += [f"{record['us_cpu_running']:.2f} us"] if "us_cpu_running" in record else []
        return ", ".join([*parts, "" if record.get("correct", True) else "TABLE WRONG"]).rstrip(
            ", "
        )
    return "done"


def summary(journal: Journal) -> str:
    """The table of goals as lines for a terminal."""
    records = from_journal(journal).records
    lines = [
        f"{outcome.goal.title:<52.52} {outcome.goal.against:<28.28} {outcome.goal.wanted:>16} "
        f"{outcome.spread:>22}  {outcome.verdict.strip('*')}"
        for outcome in outcomes(records)
    ]
    return "\n".join([*lines, *(f"FAILED  {failure}" for failure in failures(records))])


def chosen_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What a command line asks for; that of this process if none is given."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--quick", action="store_true", help="small loads, one round")
    arguments.add_argument("--events", type=int, help="events of the main load")
    arguments.add_argument("--large", type=int, help="events of the large load; 0 leaves it out")
    arguments.add_argument("--only", nargs="+", default=[], help="measures: NAME or NAME/SCALE")
    arguments.add_argument("--subjects", nargs="+", default=[], help="programs; all without it")
    arguments.add_argument("--runs", type=int, help="most rounds of a measure")
    arguments.add_argument("--log", type=Path, default=LOG)
    arguments.add_argument("--fresh", action="store_true", help="begin a new log")
    arguments.add_argument("--publish", action="store_true", help="store and write the page")
    arguments.add_argument("--timeout", type=float, default=PATIENCE_SECONDS)
    return arguments.parse_args(words)


def _sizes(chosen: argparse.Namespace) -> Sizes:
    base = asdict(QUICK if chosen.quick else Sizes())
    given = {"events": chosen.events, "large": chosen.large}
    return Sizes(**{**base, **{name: one for name, one in given.items() if one is not None}})


def main() -> int:
    """Run what is left to run and print the table; status 1 when something failed."""
    end_all_on_signals()
    chosen = chosen_arguments()
    sizes = _sizes(chosen)
    if chosen.fresh:
        chosen.log.unlink(missing_ok=True)
    if chosen.publish and sizes != Sizes():
        print("the page speaks of full sizes: publish a session of these only", file=sys.stderr)
        return 2
    journal = Journal(chosen.log)
    known = from_journal(journal).header.get("sizes", asdict(sizes))
    if known != asdict(sizes):
        print(f"{chosen.log} was begun with other sizes ({known}): use --fresh", file=sys.stderr)
        return 2
    today = datetime.now(UTC).date().isoformat()
    journal.add({"session": {"date": today, **description(), "sizes": asdict(sizes)}})
    todo = list(
        jobs(
            chosen_measures(chosen.only, sizes),
            chosen.subjects,
            1 if chosen.quick and chosen.runs is None else chosen.runs,
        )
    )
    with tempfile.TemporaryDirectory(prefix="ingestd-bench-") as folder:
        Runner(journal, sizes, Path(folder), chosen.timeout).run(todo)
    print(summary(journal))
    session = from_journal(journal)
    if chosen.publish:
        store(session)
        write(load_sessions())
        chosen.log.replace(chosen.log.with_suffix(".published.jsonl"))
    return 1 if failures(session.records) else 0


if __name__ == "__main__":
    sys.exit(main())

"""From the log of a session to what is kept: the stored sessions, the page and its plots.

python -m bench.report [--log FILE]     with a log it becomes a stored session first
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import plots
from bench.goals import Outcome, Record, good, growth_points, number, outcomes, select
from bench.journal import Journal, Slot
from bench.profile_page import kept_profile
from docs.generate import between

ROOT = Path(__file__).resolve().parents[1]
SESSIONS = ROOT / "bench" / "results" / "sessions"
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "plots"
COLUMNS = (
    ("records/s", "per_s"),
    ("with start-up", "per_s_total"),
    ("CPU us/record", "us_cpu_running"),
    ("with start-up", "us_cpu"),
    ("PSS MB", "pss_mb"),
    ("RSS MB", "rss_mb"),
    ("first commit s", "first_snapshot_s"),
    ("table MB", "table_mb"),
    ("files", "files"),
    ("load before", "load_before"),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A session that is kept: the line that says where it ran, and all others."""

    header: Mapping[str, Any]
    records: Sequence[Record]

    @property
    def title(self) -> str:
        """The day and the processor."""
        return f"{self.header.get('date', '')}, {self.header.get('processor', '')}"


def load_sessions(folder: Path = SESSIONS) -> list[Stored]:
    """The sessions in a folder, by date."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    found = [Stored(document["session"], document["records"]) for document in documents]
    return sorted(found, key=lambda session: str(session.header["date"]))


def from_journal(journal: Journal) -> Stored:
    """The session in a log: the last header, and of every slot what was found at last."""
    records = journal.records()
    headers = [record["session"] for record in records if "session" in record]
    slots = {Slot.of(record): record for record in records if "measure" in record}
    return Stored(headers[-1] if headers else {}, list(slots.values()))


def store(session: Stored, folder: Path = SESSIONS) -> None:
    """Keep a session, one line for each run; it replaces one of the same date."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(record)}" for record in session.records)
    head = json.dumps(session.header, indent=1)
    path = folder / f"{session.header['date']}.json"
    path.write_text(f'{{"session": {head},\n"records": [\n{lines}\n]}}\n', encoding="utf-8")


def page(text: str, sessions: Sequence[Stored]) -> str:
    """The page with its generated parts renewed."""
    parts = {
        "goals": goals_table(sessions),
        "runs": _each(sessions, lambda session: runs_table(session.records)),
        "cores": cores_table([record for session in sessions for record in session.records]),
        "machine": _each(sessions, lambda session: machine_text(session.header)),
        "profile": kept_profile(),
        "plots": "\n".join(f"![{name}](plots/{name}.svg)" for name in all_figures(sessions)),
    }
    for name, body in parts.items():
        text = between(text, name, body)
    return text


def goals_table(sessions: Sequence[Stored]) -> str:
    """Each goal, and for each session what was found and whether that meets the goal."""
    titles = " | ".join(session.title for session in sessions)
    rows = [f"| measure | against | goal | {titles} |", "|---" * (3 + len(sessions)) + "|"]
    for found in zip(*(outcomes(session.records) for session in sessions), strict=True):
        goal = found[0].goal
        cells = [_outcome_cell(outcome) for outcome in found]
        if not any(cells):
            cells[-1] = found[-1].verdict
        rows.append(f"| {goal.title} | {goal.against} | {goal.wanted} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _outcome_cell(outcome: Outcome) -> str:
    if not outcome.values:
        return ""
    return f"{outcome.spread}, n = {len(outcome.values)}, {outcome.verdict}"


def _each(sessions: Sequence[Stored], text: Callable[[Stored], str]) -> str:
    return "\n\n".join(f"**{session.title}**\n\n{text(session)}" for session in sessions)


def runs_table(records: Sequence[Record]) -> str:
    """Each measure of each program: medians and ranges of its runs."""
    head = ["run", "n", *(name for name, _ in COLUMNS), "table right"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for measure, subject, scale in _groups(records):
        runs = select(records, measure, subject, scale)
        name = f"{measure} {subject}" + ("" if scale == "main" else f", {scale}")
        cells = [spread([run[key] for run in runs if key in run]) for _, key in COLUMNS]
        rows.append(
            f"| {name} | {_count(records, measure, subject, scale)} | {' | '.join(cells)} | "
            f"{_right(records, measure, subject, scale)} |"
        )
    return "\n".join(rows)


def cores_table(records: Sequence[Record]) -> str:
    """Rates and bytes with one and with more tasks, as the runs on several masters found them."""
    points = [
        point
        for record in select(records, "cores", "ingestd", "main")
        for point in record["points"]
    ]
    if not points:
        return "Not measured."
    names = list(points[0])
    rows = [
        f"| {' | '.join(name.replace('_', ' ') for name in names)} |",
        "|---" * len(names) + "|",
    ]
    cells = ([_cell(point[name]) for name in names] for point in points)
    return "\n".join([*rows, *(f"| {' | '.join(row)} |" for row in cells)])


def machine_text(header: Mapping[str, Any]) -> str:
    """Where and with what the session ran."""
    lines = []
    for name, value in header.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
        lines.append(f"* {name.replace('_', ' ')}: {value}")
    return "\n".join(lines)


def figures(records: Sequence[Record]) -> dict[str, str]:
    """SVG text by name of the plot; only of what was measured."""
    found: dict[str, str] = {}
    for name, title, unit, key in (
        ("rate", "Records per second, 1 M events into an empty table", "records/s", "per_s"),
        ("cpu", "CPU of a record, start-up apart", "microseconds", "us_cpu_running"),
        ("memory", "Most memory of the process tree", "MB (PSS)", "pss_mb"),
    ):
        rows = [
            plots.Bar(
                subject, [float(one[key]) for one in select(records, "ingest", subject, "main")]
            )
            for subject in ("ingestd", "flink", "java", "pypaimon")
        ]
        if any(row.values for row in rows):
            found[name] = plots.bars(title, unit, rows)
    for dimension, points in growth_points(records).items():
        if any(size > 0 for size, _ in points):
            found[f"growth-{dimension}"] = plots.lines(
                f"CPU of a batch by {dimension}", dimension, "ms", {"measured": points}
            )
    return found


def all_figures(sessions: Sequence[Stored]) -> dict[str, str]:
    """SVG text by name of the plot, each of the newest session that measured it."""
    return {name: text for session in sessions for name, text in figures(session.records).items()}


def spread(values: Sequence[float]) -> str:
    """Median, and the range when there is one."""
    if not values:
        return ""
    middle = number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} [{number(min(values))}–{number(max(values))}]"


def failures(records: Sequence[Record]) -> list[str]:
    """What did not come about, one line each."""
    return [
        f"{record['measure']} {record['subject']} {record['scale']} round {record['round']}: "
        + str(record["failed"]).splitlines()[0]
        for record in records
        if "failed" in record
    ]


def write(sessions: Sequence[Stored]) -> None:
    """Renew the page and its plots."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    drawn = all_figures(sessions)
    for path in PLOTS.glob("*.svg"):
        if path.stem not in drawn:
            path.unlink()
    for name, text in drawn.items():
        (PLOTS / f"{name}.svg").write_text(text, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), sessions), encoding="utf-8")


def _groups(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    found = {
        (record["measure"], record["subject"], record["scale"]): None
        for record in records
        if "events" in record or "failed" in record
    }
    return list(found)


def _of(records: Sequence[Record], *place: str) -> list[Record]:
    return [
        record
        for record in records
        if (record["measure"], record["subject"], record["scale"]) == place
    ]


def _count(records: Sequence[Record], *place: str) -> str:
    runs = _of(records, *place)
    fine = sum(1 for run in runs if good(run))
    return str(fine) if fine == len(runs) else f"{fine} of {len(runs)}"


def _right(records: Sequence[Record], *place: str) -> str:
    verdicts = [one["correct"] for one in _of(records, *place) if "correct" in one]
    if not verdicts:
        return ""
    return "yes" if all(verdicts) else f"**no**, {verdicts.count(False)} of {len(verdicts)}"


def _cell(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {one}" for key, one in value.items()) + ")"
    return str(value)


def main() -> int:
    """Store a log if one is given, then write the page."""
    arguments = argparse.ArgumentParser(description="The stored sessions, the page and its plots.")
    arguments.add_argument("--log", type=Path, help="store this session first")
    chosen = arguments.parse_args()
    if chosen.log:
        store(from_journal(Journal(chosen.log)))
    write(load_sessions())
    return 0


if __name__ == "__main__":
    sys.exit(main())

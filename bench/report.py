"""From the log of a session to what is kept: the stored results, the page and its plots.

python -m bench.report [--log FILE]     with a log it becomes the stored session first
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import plots
from bench.goals import Record, good, growth_points, number, outcomes, select
from bench.journal import Journal, Slot
from bench.profile_page import kept_profile
from docs.generate import between

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "bench" / "results" / "stored.json"
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


def load_stored(path: Path = STORED) -> Stored:
    """The session in a file of results."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Stored(document["session"], document["records"])


def from_journal(journal: Journal) -> Stored:
    """The session in a log: the last header, and of every slot what was found at last."""
    records = journal.records()
    headers = [record["session"] for record in records if "session" in record]
    slots = {Slot.of(record): record for record in records if "measure" in record}
    return Stored(headers[-1] if headers else {}, list(slots.values()))


def store(session: Stored, path: Path = STORED) -> None:
    """Keep a session: one line for each run, so that changes show."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(record)}" for record in session.records)
    head = json.dumps(session.header, indent=1)
    path.write_text(f'{{"session": {head},\n"records": [\n{lines}\n]}}\n', encoding="utf-8")


def page(text: str, session: Stored) -> str:
    """The page with its generated parts renewed."""
    parts = {
        "goals": goals_table(session.records),
        "runs": runs_table(session.records),
        "cores": cores_table(session.records),
        "machine": machine_text(session.header),
        "profile": kept_profile(),
        "plots": "\n".join(f"![{name}](plots/{name}.svg)" for name in figures(session.records)),
    }
    for name, body in parts.items():
        text = between(text, name, body)
    return text


def goals_table(records: Sequence[Record]) -> str:
    """Each goal, what was found and whether that meets it."""
    rows = [
        "| measure | against | goal | median [least–greatest] | n | |",
        "|---|---|---|---|---|---|",
    ]
    for outcome in outcomes(records):
        goal, count = outcome.goal, len(outcome.values) or ""
        rows.append(
            f"| {goal.title} | {goal.against} | {goal.wanted} | {outcome.spread} | {count} "
            f"| {outcome.verdict} |"
        )
    return "\n".join(rows)


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


def write(session: Stored) -> None:
    """Renew the page and its plots."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    drawn = figures(session.records)
    for path in PLOTS.glob("*.svg"):
        if path.stem not in drawn:
            path.unlink()
    for name, text in drawn.items():
        (PLOTS / f"{name}.svg").write_text(text, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), session), encoding="utf-8")


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
    arguments = argparse.ArgumentParser(description="The stored session, the page and its plots.")
    arguments.add_argument("--log", type=Path, help="store this session first")
    chosen = arguments.parse_args()
    if chosen.log:
        store(from_journal(Journal(chosen.log)))
    write(load_stored())
    return 0


if __name__ == "__main__":
    sys.exit(main())

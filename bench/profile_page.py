"""The profile that is kept, and how the page shows it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.profile_threads import BROKER

KEPT = Path(__file__).resolve().parent / "results" / "profile.json"


def store(found: Mapping[str, Any], path: Path = KEPT) -> None:
    """Keep a profile instead of the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")


def kept_profile(path: Path = KEPT) -> str:
    """The stored profile as Markdown, or a sentence that no profile is stored."""
    if not path.exists():
        return "Not measured."
    return markdown(json.loads(path.read_text(encoding="utf-8")))


def markdown(found: Mapping[str, Any]) -> str:
    """The profile as the section `profile` of docs/performance.md."""
    own = sum(spent for name, spent in found["processes"].items() if name != BROKER)
    lines = [
        f"Debezium JSON, {found['records']:,} records in warm batches of {found['batch']:,}, "
        f"dynamic buckets, Parquet, {found['cores']} cores, {found['date']}: {own:.2f} us of CPU a "
        f"record without the broker.",
        "",
        *_table("process", "CPU, us a record", found["processes"]),
        *_table("step in the workers", "CPU, us a record", found["steps"]),
        *_table("threads", "CPU, us a record", found["threads"]),
        *_table("a warm batch", "wall, ms", found["timeline"]),
        *_table("border", "bytes a record", found["borders"]),
        *_table("memory", "MB", {name: size / 1e6 for name, size in found["memory"].items()}),
        f"Of the workers' time {found['workers_system']:.2f} us a record are the kernel's, with "
        f"{found['page_faults_per_1000']:.0f} page faults in 1,000 records.",
    ]
    return "\n".join(lines)


def _table(what: str, unit: str, rows: Mapping[str, float]) -> list[str]:
    body = [f"| {name} | {value:,.2f} |" for name, value in rows.items()]
    return [f"| {what} | {unit} |", "|---|---|", *body, ""]

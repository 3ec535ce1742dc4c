"""What every reader and writer made of every capability, as the compatibility tests found it.

Results lie in ``docs/compatibility.json``: the tests compare with it, and renew it when asked.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ingestd.errors import IngestdError
from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.data_types import DataField
from tests.support.oracle import OracleError
from tests.support.pypaimon import PypaimonError

FILE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.json"
YES = "yes"
_LONGEST = 160


@dataclass
class Matrix:
    """Outcomes by part, capability and judge: `YES`, or ``no: `` and why, in the judge's words."""

    found: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    def note(self, part: str, capability: str, judge: str, outcome: str) -> None:
        self.found.setdefault(part, {}).setdefault(capability, {})[judge] = outcome

    def write(self) -> None:
        """Keep what was found; parts that were not looked at stay as they are."""
        known = stored()
        for part, capabilities in self.found.items():
            known[part] = capabilities
        text = json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True)
        FILE.write_text(text + "\n", encoding="utf-8")


def stored() -> Any:
    """The results of the last recording."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def outcome(judge: Callable[[], bool | str]) -> str:
    """What a judge says: whether it agrees, what is different, or why it cannot tell."""
    try:
        said = judge()
        return YES if said is True else f"no: {said or 'other rows'}"
    except (OracleError, PypaimonError, IngestdError) as error:
        return f"no: {words(str(error))}"
    except (pa.ArrowException, KeyError, TypeError) as error:
        return f"no: other columns ({words(str(error))})"


def difference(found: list[Any], wanted: list[Any]) -> bool | str:
    """True for equal rows, or in which columns they are not."""
    if len(found) != len(wanted):
        return f"{len(found)} rows of {len(wanted)}"
    columns = {
        name
        for one, other in zip(found, wanted, strict=True)
        for name in other
        if one[name] != other[name]
    }
    return f"other values in {', '.join(sorted(columns))}" if columns else True


def is_yes(text: str) -> bool:
    return text == YES


def words(message: str) -> str:
    """The sentence of an error message that says why, without what differs from run to run."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    last = re.sub(r"^[\w.]*\.?(\w+(?:Error|Exception)): ", r"", last)
    last = re.sub(r"(?:file:)?/[^\s,;:)'\"]+", "…", last)
    last = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27,}[\w.-]*", "…", last)
    last = re.sub(r"@[0-9a-f]{4,}", "", last).replace("|", "/").replace("`", "'")
    return last if len(last) <= _LONGEST else last[: _LONGEST - 1] + "…"


def rows_of(rows: pa.Table, fields: tuple[DataField, ...], like: pa.Table) -> list[Any]:
    """Rows that a reader gave in canonical form and order, in the columns of our own table."""
    if rows.num_rows == 0:
        return []
    # Other readers give other types of Arrow for the same values: views, other units.
    cast = rows.select(like.column_names).cast(like.schema)
    return [json.loads(line) for line in sorted_json_lines(cast, fields)]

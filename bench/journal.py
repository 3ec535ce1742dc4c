"""The log of measurements: one JSON object a line, so that an interrupted session goes on."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """What a line is about: a measure, of whom, at which size, in which round."""

    measure: str
    subject: str
    scale: str
    round: int

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Slot":
        """The slot that a record fills."""
        return cls(record["measure"], record["subject"], record["scale"], record["round"])

    def document(self) -> Record:
        """The fields that identify a line."""
        fields = {"measure": self.measure, "subject": self.subject}
        return {**fields, "scale": self.scale, "round": self.round}


class Journal:
    """Lines of one session in a file that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, record: Mapping[str, Any]) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def records(self) -> list[Record]:
        """All lines; one that was cut off in the middle by a crash is left out."""
        return list(self._lines())

    def holds(self, slot: Slot) -> bool:
        """Whether the slot was measured, and did not fail."""
        return any(
            "failed" not in line and Slot.of(line) == slot
            for line in self._lines()
            if "measure" in line
        )

    def _lines(self) -> Iterator[Record]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue

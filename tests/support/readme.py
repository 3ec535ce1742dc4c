"""What the README shows, as a newcomer would copy it: commands, files, programs and outputs."""

import re
import shlex
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
_NUMBER = re.compile(r"\d[\d,.]*")


def section(title: str) -> str:
    """The text under a heading."""
    return README.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]


def block(title: str, language: str) -> str:
    """The first fenced block of a language under a heading."""
    found = re.search(rf"```{language}\n(.*?)```", section(title), re.DOTALL)
    assert found, f"no {language} under {title}"
    return found[1]


def commands(title: str) -> list[list[str]]:
    """The command lines of ingestd under a heading, as words."""
    lines = re.findall(r"^    ingestd (.*)$", section(title), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def shape(line: str) -> re.Pattern[str]:
    """A line with any numbers where it has some, and any folder where it has DEMO."""
    parts = (re.escape(part) for part in _NUMBER.split(line))
    return re.compile(_NUMBER.pattern.join(parts).replace("DEMO", r"\S+"))

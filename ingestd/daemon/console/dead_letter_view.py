"""The view of dead letters: their counts by reason, and the newest with their replay commands."""

import shlex
from typing import Any

from ingestd.daemon.console.elements import UNKNOWN, number, table, text, time_tag
from ingestd.daemon.console.stored_dead_letters import StoredDeadLetters
from ingestd.ingest.dead_letters.shown_bytes import shown_bytes
from ingestd.log import redact

_MOST_TEXT = 2_000
_WITHOUT_BYTES = (
    "<p>Keys and values are shown only if <code>http.auth-file</code> protects this page, and if "
    "their files are not large: <code>ingestd dlq show</code> prints them.</p>"
)


def dead_letter_view(letters: StoredDeadLetters | str, replay: str) -> str:
    """Return the console's view of dead letters as HTML: counts, and the newest ones.

    `letters` is an error message if they could not be read. `replay` is the command that replays
    dead letters, without the options that select them.
    """
    if isinstance(letters, str):
        return f'<ul class="health"><li class="bad">{text(letters)}</li></ul>'
    head = ("topic", "stage", "reason", "dead letters")
    rows = ((*map(text, group), number(count)) for group, count in letters.counts)
    title = f"Dead letters by reason, the newest {letters.counted:,} of {letters.total:,}"
    counts = table("reasons", title, head, rows, "none", numbers=head[3:])
    return counts + _newest(letters, replay)


def _newest(letters: StoredDeadLetters, replay: str) -> str:
    rows = (
        (
            _record(letter, replay),
            time_tag(letter["timestamp"] and letter["timestamp"].timestamp()),
            text(letter.get("table") or UNKNOWN),
            text(f"{letter['stage']}: {letter['reason']}"),
            text(redact(letter["message"])),
        )
        for letter in letters.newest
    )
    head = ("topic/partition@offset", "time", "table", "reason", "what is wrong")
    title = f"The newest {len(letters.newest)} dead letters"
    listed = table("dead-letters", title, head, rows, "none", long=head[4:])
    return listed + ("" if letters.has_bytes else _WITHOUT_BYTES)


def _record(letter: dict[str, Any], replay: str) -> str:
    """Return a record's coordinates; a click on them shows key, value and replay command."""
    coordinates = ("--topic", letter["topic"], "--partition", letter["partition"], "--offset",
                   letter["offset"])  # fmt: skip
    command = f"{replay} {shlex.join(map(str, coordinates))}"
    parts = "".join(_bytes(name, letter[name]) for name in ("key", "value") if name in letter)
    name = text(f"{letter['topic']}/{letter['partition']}@{letter['offset']}")
    return (
        f"<details><summary>{name}</summary>{parts}<p>Replay:</p><pre>{text(command)}</pre>"
        "</details>"
    )


def _bytes(name: str, content: bytes | None) -> str:
    shown = shown_bytes(content)
    words = redact(str(shown))
    more = f" … {len(content or b''):,} bytes" if len(words) > _MOST_TEXT else ""
    return f"<p>{name} ({shown.form}):</p><pre>{text(words[:_MOST_TEXT])}{more}</pre>"

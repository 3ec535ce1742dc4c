"""Parser of `flink run` command lines of Paimon's CDC actions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingestd.errors import ConfigError

ACTIONS = ("kafka_sync_table", "kafka_sync_database")
_FLAG = "true"
_WITH_VALUE = ("-c", "--class", "-C", "--classpath", "-p", "--parallelism", "-s", "--fromSavepoint")
"""Switches of `flink run` that a value follows."""


@dataclass(frozen=True, slots=True)
class FlinkCommand:
    """One action; `arguments` by name without hyphens, each with its values in order.

    `flink` holds the words before the action: options of Flink itself.
    """

    action: str
    arguments: dict[str, list[str]] = field(default_factory=dict)
    flink: tuple[str, ...] = ()


def parse_flink_command(words: Sequence[str]) -> FlinkCommand:
    """Parse a command; arguments are `--name value` or `--name=value`.

    Raises ConfigError if there is no action that reads Kafka, and for words outside of arguments.
    """
    names = [word.lower().replace("-", "_") for word in words]
    at = next((n for n, name in enumerate(names) if name in ACTIONS), None)
    if at is None:
        others = [name for name in names if name.endswith(("_sync_table", "_sync_database"))]
        what = f"'{others[0]}' does not read Kafka" if others else "the command line has no action"
        raise ConfigError(f"{what}; what can be taken over is {' and '.join(ACTIONS)}")
    return FlinkCommand(names[at], _arguments(words[at + 1 :]), tuple(words[:at]))


def _arguments(words: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if not _is_name(word):
            raise ConfigError(f"'{word}' stands behind no --argument; does a quote miss around it?")
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            has_value = at + 1 < len(words) and not _is_name(words[at + 1])
            value = words[at + 1] if has_value else _FLAG
            at += has_value
        found.setdefault(name.replace("-", "_"), []).append(value)
        at += 1
    return found


def _is_name(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-")[:1].isalpha()


def flink_options(words: Sequence[str]) -> dict[str, str]:
    """Return options of Flink itself: settings (`-D`) and switches, with their values.

    Words before `run`, and the jar, are left out.
    """
    start = list(words).index("run") + 1 if "run" in words else 0
    found: dict[str, str] = {}
    at = start
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("-D"):
            setting = word[2:]
            if not setting and at < len(words):
                setting, at = words[at], at + 1
            name, _, value = setting.partition("=")
            found[name] = value
        elif word in _WITH_VALUE and at < len(words):
            found[word], at = words[at], at + 1
        elif _is_name(word):
            found[word] = ""
    return found

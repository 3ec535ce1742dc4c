"""table-options.md, from the declarations of table options."""

from collections.abc import Mapping

from ingestd.paimon.spec.option_types import (
    Access,
    ChangeRule,
    Support,
    TableOption,
    parse_bool,
    parse_float,
    parse_int,
    parse_millis,
    parse_names,
    parse_size,
    parse_text,
    parse_word,
)
from ingestd.paimon.spec.table_options import DECLARED

HEAD = """# Table options

Written by `make docs` from `ingestd/paimon/spec/honoured_options.py` and
`ingestd/paimon/spec/table_options.py`. These are all options of Java Paimon 1.4.2, those of its
engines that tables carry, and ingestd's own. Columns and other parts of a name are in angle
brackets.

An option that does not exist is refused where ingestd creates a table, in its configuration and in
the library, with the nearest name. Tables that exist are not refused for it: ingestd logs one
warning, `table_options_ignored`, that names each option without effect and the reason. Values
outside those that are named as supported are refused at the step that the table names: for reading,
for writing, or only for new tables.
"""

_REFUSED = {
    Access.READ: "Refused",
    Access.WRITE: "Refused for writing",
    Access.CREATE: "Refused for new tables",
}
_CHANGES = {
    ChangeRule.ANY: "",
    ChangeRule.TO_TRUE: " Cannot become `false` again once the table has snapshots.",
    ChangeRule.NEVER: " Cannot change once the table has snapshots.",
}
_TYPES: Mapping[object, str] = {
    parse_bool: "boolean",
    parse_float: "number",
    parse_int: "whole number",
    parse_millis: "duration",
    parse_names: "list",
    parse_size: "size",
    parse_text: "text",
    parse_word: "keyword",
}
_UNITS: Mapping[object, Mapping[str, int]] = {
    parse_millis: {"h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1},
    parse_size: {"mb": 1 << 20, "kb": 1 << 10, "bytes": 1},
}
_SECTIONS = (
    ("Honoured", "ingestd obeys these."),
    ("Refused", "No table with such an option is read or written."),
    ("Refused for writing", "Tables with these can be read."),
    ("Refused for new tables", "Existing tables with these are read and written, with a warning."),
    ("Irrelevant", "These have no effect on ingestd. They are allowed, with a warning."),
)


def table_options_page() -> str:
    """The page as text."""
    lines = [HEAD]
    for section, text in _SECTIONS:
        lines += [f"## {section}", "", text, "", *_table(section), ""]
    return "\n".join(lines)


def _table(section: str) -> list[str]:
    options = sorted((one for one in DECLARED if _section(one) == section), key=_name)
    if section == "Honoured":
        head = ["| option | type | default | what it does |", "|---|---|---|---|"]
        return head + [
            f"| {_names(option)} | {_TYPES[option.parse]} | {_default(option)} | {_text(option)} |"
            for option in options
        ]
    head = ["| option | why |", "|---|---|"]
    return head + [f"| {_names(option)} | {_text(option)} |" for option in options]


def _section(option: TableOption[object]) -> str:
    if option.support is Support.HONOURED:
        return "Honoured"
    return "Irrelevant" if option.values is None else _REFUSED[option.refused_from]


def _name(option: TableOption[object]) -> str:
    return option.name


def _names(option: TableOption[object]) -> str:
    older = "".join(f", formerly `{alias}`" for alias in option.aliases)
    return f"`{option.name}`{older}"


def _default(option: TableOption[object]) -> str:
    default = option.default
    if default is None or default in ("", ()):
        return "–"
    if option.parse is parse_bool:
        return f"`{str(default).lower()}`"
    units = _UNITS.get(option.parse, {})
    for unit, factor in units.items():
        if isinstance(default, int) and default and default % factor == 0:
            return f"`{default // factor} {unit}`"
    return f"`{default}`"


def _text(option: TableOption[object]) -> str:
    note = option.note.rstrip(".")
    text = f"{note if note.startswith('ingestd') else note[0].upper() + note[1:]}."
    named = sorted(value for value in option.values or () if value)
    if named:
        text += f" Supported: {', '.join(f'`{one}`' for one in named)}."
    elif option.values is not None and option.support is Support.HONOURED:
        text += f" {_REFUSED[option.refused_from]}."
    return text + _CHANGES[option.change]

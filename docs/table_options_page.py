"""table-options.md, from the declarations of table options."""

from ingestd.paimon.spec.option_types import Access, ChangeRule, Support, TableOption
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
        head = ["| option | default | what it does |", "|---|---|---|"]
        return head + [f"| {_names(one)} | {_default(one)} | {_text(one)} |" for one in options]
    head = ["| option | why |", "|---|---|"]
    return head + [f"| {_names(one)} | {_text(one)} |" for one in options]


def _section(option: TableOption[object]) -> str:
    if option.support is Support.HONOURED:
        return "Honoured"
    return "Irrelevant" if option.values is None else _REFUSED[option.refused_from]


def _name(option: TableOption[object]) -> str:
    return option.name


def _names(option: TableOption[object]) -> str:
    older = "".join(f", formerly `{one}`" for one in option.aliases)
    return f"`{option.name}`{older}"


def _default(option: TableOption[object]) -> str:
    default = option.default
    if default is None or default in ("", ()):
        return "–"
    if option.parse.__name__ == "parse_bool":
        return f"`{str(default).lower()}`"
    if option.parse.__name__ == "parse_millis":
        return f"`{default} ms`"
    if option.parse.__name__ == "parse_size":
        return f"`{default} b`"
    return f"`{default}`"


def _text(option: TableOption[object]) -> str:
    text = option.note[0].upper() + option.note[1:].rstrip(".") + "."
    named = sorted(one for one in option.values or () if one)
    if named:
        text += f" Supported: {', '.join(f'`{one}`' for one in named)}."
    elif option.values is not None and option.support is Support.HONOURED:
        text += f" {_REFUSED[option.refused_from]}."
    return text + _CHANGES[option.change]

"""Check column names against the restrictions of tables and of file formats.

The returned reasons complete a sentence whose subject is the column.
"""

from collections.abc import Iterable, Mapping

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.avro_schemas import is_avro_name
from ingestd.paimon.spec.data_types import (
    KEY_PREFIX,
    SYSTEM_COLUMN_NAMES,
    DataType,
    walk_types,
)

_PARTICULAR = frozenset({"avro", "orc"})
_FILE_FORMATS = (honoured.FILE_FORMAT, honoured.FILE_FORMAT_PER_LEVEL, honoured.CHANGELOG_FORMAT)


def table_name_problem(name: str) -> str | None:
    """Return the reason why no table can have a column of this name; None if the name is valid.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#datafield
    """
    if not name.strip():
        return "has an empty name"
    if name in SYSTEM_COLUMN_NAMES or name.startswith(KEY_PREFIX):
        return "has a name that is reserved by the table format"
    return None


def file_name_problem(name: str, file_format: str) -> str | None:
    """Return why files of a format cannot have a column of this name; None if they can.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro
    """
    if file_format == "avro" and not is_avro_name(name):
        return "has a name that Avro files cannot have: letters of ASCII, digits and _ only"
    if file_format == "orc" and "`" in name:
        # Java reads it as a quoted name and does not find the column, or refuses the file.
        return "has a backtick in its name, so that other readers do not find it in ORC files"
    return None


def nested_name_problem(data_type: DataType, file_format: str) -> str | None:
    """Return why a format cannot store the nested fields of a type; None if it can."""
    for nested_type in walk_types(data_type):
        for inner in nested_type.fields:
            problem = file_name_problem(inner.name, file_format)
            if problem is not None:
                return f"has a field {inner.name!r} within it, which {problem}"
    return None


def nested_name_problems(
    types: Mapping[str, DataType], options: Mapping[str, str]
) -> dict[str, str]:
    """Return why a file format refuses nested fields, by the name of the column.

    Columns without a problem are left out. `types` are the columns with their types, `options` the
    table options.
    """
    formats, columns = _particular_formats(options), dict[str, str]()
    for name, data_type in types.items():
        problems = (nested_name_problem(data_type, file_format) for file_format in formats)
        problem = next((candidate for candidate in problems if candidate is not None), None)
        if problem is not None:
            columns[name] = problem
    return columns


def _particular_formats(options: Mapping[str, str]) -> list[str]:
    """Return the file formats of a table that restrict column names."""
    texts = ((option.of(options) or "").lower() for option in _FILE_FORMATS)
    formats = {level.rpartition(":")[2].strip() for text in texts for level in text.split(",")}
    return sorted(formats & _PARTICULAR)


def column_name_problems(names: Iterable[str], options: Mapping[str, str]) -> dict[str, str]:
    """Return, by name, why columns are invalid for a table with these options.

    Valid names are left out.
    """
    formats = _particular_formats(options)
    columns: dict[str, str] = {}
    for name in names:
        problem = table_name_problem(name)
        for file_format in formats:
            problem = problem or file_name_problem(name, file_format)
        if problem is not None:
            columns[name] = problem
    return columns

"""Declarations of the table options for data files of texts, which are only read.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#csv
"""

from ingestd.paimon.spec.option_types import (
    Access,
    TableOption,
    honoured,
    parse_bool,
    parse_text,
    parse_word,
)

CSV_FIELD_DELIMITER = honoured(
    "csv.field-delimiter", parse_text, ",", "Character between two values of a line.",
    aliases=("field-delimiter", "seq"),
)  # fmt: skip
CSV_LINE_DELIMITER = honoured(
    "csv.line-delimiter", parse_text, "\n", "Text between two lines of a CSV file.",
    aliases=("lineSep",),
)  # fmt: skip
CSV_QUOTE = honoured(
    "csv.quote-character", parse_text, '"', "Character around a value.", aliases=("quote",)
)
CSV_ESCAPE = honoured(
    "csv.escape-character", parse_text, "\\", "Character before a quote in a value.",
    aliases=("escape",),
)  # fmt: skip
CSV_HEADER = honoured(
    "csv.include-header", parse_bool, False, "CSV files begin with the names of their columns.",
    aliases=("header",),
)  # fmt: skip
CSV_NULL = honoured("csv.null-literal", parse_text, "", "Text of null.", aliases=("nullvalue",))
CSV_MODE = honoured(
    "csv.mode", parse_word, "permissive", "Whether values after an invalid one are null.",
    values=("permissive", "failfast"), refused_from=Access.READ, aliases=("mode",),
    refusal="files have the number of rows that their manifests state",
)  # fmt: skip
JSON_IGNORE_ERRORS = honoured(
    "json.ignore-parse-errors", parse_bool, False, "Invalid values are null."
)
JSON_LINE_DELIMITER = honoured(
    "json.line-delimiter", parse_text, "\n", "Text between two lines of a JSON file."
)
TEXT_LINE_DELIMITER = honoured(
    "text.line-delimiter", parse_text, "\n", "Text between two lines of a text file."
)

TEXT_OPTIONS: tuple[TableOption[object], ...] = tuple(
    option for option in globals().values() if isinstance(option, TableOption)
)
"""All options declared in this module, in the order of their declarations."""

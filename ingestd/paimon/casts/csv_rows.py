"""Rows of CSV files: lines of texts, which are cast to the types of their columns as in Java."""

import base64
import re
from collections.abc import Callable, Sequence

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.evolution import cast_text
from ingestd.paimon.spec import text_options
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    DataField,
    DataType,
)
from ingestd.paimon.spec.option_types import Options

Texts = Sequence[str | None]
_WHOLE = re.compile(r"[+-]?\d+")


def csv_rows(lines: Sequence[str], fields: Sequence[DataField], options: Options) -> pa.Table:
    """Parse lines of a CSV file, whose values are in the order of `fields`, into rows.

    With the option `csv.mode` = `permissive`, an invalid value and the remaining values of its line
    are null; otherwise ValueError is raised.
    """
    split = _splitter(len(fields), options)
    null = text_options.CSV_NULL.of(options)
    cells = [[None if text == null else text for text in split(line)] for line in lines]
    lenient = text_options.CSV_MODE.of(options) == "permissive"
    columns: dict[str, Array] = {}
    for index, field in enumerate(fields):
        texts = [row[index] for row in cells]
        column = typed_column(texts, field.type, lenient=lenient)
        if lenient and column.null_count > texts.count(None):
            invalid = column.is_null().to_pylist()
            for row, text, is_invalid in zip(cells, texts, invalid, strict=True):
                if is_invalid and text is not None:
                    row[index:] = [None] * (len(fields) - index)
        columns[field.name] = column
    return pa.table(columns)


def typed_column(texts: Texts, t: DataType, *, lenient: bool) -> Array:
    """Return texts as values of a type that is not nested; None becomes null.

    With `lenient`, invalid texts are null; otherwise they raise ValueError.
    """
    try:
        return _typed(texts, t)
    except ValueError:
        if not lenient:
            raise
    known: dict[str, bool] = {}
    for text in set(texts) - {None}:
        try:
            _typed([text], t)
            known[str(text)] = True
        except ValueError:
            known[str(text)] = False
    return _typed([text if text is not None and known[text] else None for text in texts], t)


def _typed(texts: Texts, t: DataType) -> Array:
    if t.root in CHARACTER_ROOTS:
        return pa.array(texts, pa.string())
    if t.root == "BOOLEAN":
        return pa.array([None if text is None else text.lower() == "true" for text in texts])
    if t.root in BINARY_ROOTS:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in texts]
        return pa.array(values, to_arrow_type(t))
    if t.root in INTEGER_ROOTS:
        for text in texts:
            if text is not None and _WHOLE.fullmatch(text) is None:
                raise ValueError(f"'{text}' cannot be read as {t}")
    try:
        return cast_text(pa.array(texts, pa.string()), t)
    except UnsupportedError as error:
        raise ValueError(error.message) from error


def _splitter(count: int, options: Options) -> Callable[[str], list[str | None]]:
    """Return a function that splits a line into `count` texts, None for those that it lacks."""
    separator = text_options.CSV_FIELD_DELIMITER.of(options)[:1]
    quote = text_options.CSV_QUOTE.of(options)[:1]
    escape = text_options.CSV_ESCAPE.of(options)[:1]

    def split(line: str) -> list[str | None]:
        if not line or line.isspace():
            return [None] * count
        if quote not in line and escape not in line:
            texts = line.split(separator)
        else:
            texts = _quoted(line, separator, quote, escape)
        return [*texts[:count], *[None] * (count - len(texts))]

    return split


def _quoted(line: str, separator: str, quote: str, escape: str) -> list[str]:
    """Split a line with quotes exactly as Java does; an unterminated last value is left out."""
    texts, buffer, quoted, inside, at = list[str](), "", False, False, 0
    while at < len(line):
        char, following = line[at], line[at + 1 : at + 2]
        if char == escape:
            if (quoted or inside) and following and following in (quote, escape):
                buffer, at = buffer + following, at + 1
        elif char == quote:
            if (quoted or inside) and following == quote:
                buffer, at = buffer + following, at + 1
            else:
                if at > 2 and line[at - 1] != separator and following not in ("", separator):
                    # A quote within a value is a part of it, but not one after leading blanks.
                    buffer = "" if buffer and buffer.isspace() else buffer + char
                quoted = not quoted
            inside = not inside
        elif char == separator and not quoted:
            texts.append(buffer)
            buffer, inside = "", False
        else:
            buffer, inside = buffer + char, True
        at += 1
    return texts if quoted else [*texts, buffer]

"""Rejection reasons of records: codes, and messages for the errors of parsers."""

import re
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from ingestd.cdc.base import RecordChunk, RejectedRecord, SourceTable
from ingestd.cdc.cell_budget import CellBudgetError
from ingestd.cdc.schema_lookup import GLUE_WAY_OUT, is_glue

PARSE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The errors that msgspec raises if bytes are not a valid value of the requested type."""
BUILD_ERRORS = (ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowException)
"""The errors that Arrow and converters raise if a value does not fit a column."""

_AT_COLUMN = re.compile(r"`\$\.(?:after|before)\.(.*)`$", re.DOTALL)
_AT_KEY = re.compile(r"`\$\.(.*)`$", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`(?: - at `\$[^`]*`)?$", re.DOTALL)
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is rejected: the stage that failed, a stable code and a message."""

    stage: str
    code: str
    message: str


Reasons = dict[int, Reason]
"""The rejection reasons of messages or changes, by index."""


class RecordError(ValueError):
    """The decoding of a record failed, and the record must be rejected for `reason`."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message)
        self.reason = reason


def record_error(stage: str, code: str, message: str) -> RecordError:
    """Build the RecordError that rejects a record at this stage, with this code and message."""
    return RecordError(Reason(stage, code, message))


def explain(error: Exception, document: str, stage: str = "decode") -> Reason:
    """Convert an error of decoding a message with msgspec to a rejection reason.

    `error` is a MsgspecError, UnicodeDecodeError or RecursionError. `document` is "message value"
    or "message key". `stage` is the stage that failed; a value of the wrong type in a column of a
    message value has the stage "cast" instead.
    """
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        return Reason(stage, "invalid-utf8", f"the {document} is not UTF-8: {text}")
    if isinstance(error, RecursionError):
        return Reason(stage, "too-deep", f"the {document} is nested too deeply")
    if not isinstance(error, msgspec.ValidationError):
        return Reason(stage, "invalid-json", f"the {document} is not JSON: {text}")
    column = (_AT_KEY if stage == "key" else _AT_COLUMN).search(text)
    if column:
        what = text.rpartition(" - at ")[0]
        at = "key column" if stage == "key" else "column"
        return Reason(
            "key" if stage == "key" else "cast", "wrong-type", f"{at} {column[1]}: {what}"
        )
    unknown = _UNKNOWN_FIELD.search(text)
    if unknown:
        message = f"the {document} has the field {unknown[1]!r}, which its schema lacks"
        return Reason(stage, "unknown-column", message)
    return Reason(stage, "wrong-type", f"the {document} is not a change event: {text}")


def cell_budget_reason(error: CellBudgetError, stage: str, document: str) -> Reason:
    """Convert a CellBudgetError to a rejection reason.

    `document` is what exceeds the budget, such as "the message value", and `stage` the stage that
    failed.
    """
    return Reason(stage, "too-many-cells", f"{document} makes {error}")


def explain_cell(error: Exception, column: str, value: object, wanted: object) -> Reason:
    """Convert an error that was raised for one value of a column to a rejection reason.

    `column` is the name of the column, `value` the value, and `wanted` the type of the column.
    """
    if isinstance(error, CellBudgetError):
        return cell_budget_reason(error, "cast", f"the value of column {column}")
    if isinstance(error, UnicodeDecodeError):
        return Reason("cast", "invalid-utf8", f"column {column}: the value is not UTF-8: {error}")
    shown = repr(value)
    if isinstance(value, msgspec.Raw):
        shown = bytes(value).decode(errors="replace")
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "..."
    text = str(error)
    too_large = isinstance(error, OverflowError) or any(
        word in text for word in ("too large", "out of range", "not in range", "does not fit")
    )
    code = "out-of-range" if too_large else "wrong-type"
    return Reason("cast", code, f"column {column}: {shown} does not fit {wanted}: {text}")


def rejected(
    chunk: RecordChunk, index: int, reason: Reason, source_table: SourceTable | None = None
) -> RejectedRecord:
    """Return the rejected record for the record at this index of the chunk.

    If the key or the value is framed for AWS Glue, the reason states this instead of `reason`.
    `source_table` is the source table of the record, None if it is unknown.
    """
    document = "message value" if is_glue(chunk.values[index]) else "message key"
    if is_glue(chunk.values[index]) or is_glue(chunk.keys[index]):
        message = (
            f"the {document} has the framing of the AWS Glue Schema Registry, which is not "
            f"supported; {GLUE_WAY_OUT}"
        )
        reason = Reason(reason.stage, "glue-framing", message)
    return RejectedRecord(
        chunk.topic,
        chunk.partition,
        int(chunk.offsets[index]),
        int(chunk.timestamps[index]),
        reason.stage,
        reason.code,
        reason.message,
        chunk.keys[index],
        chunk.values[index],
        source_table,
    )

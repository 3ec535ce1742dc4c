"""The layout of Maxwell messages: the row in `data`, the old values of an update in `old`."""

import numpy as np

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import codes, numbers
from ingestd.cdc.native.column_encoding import INT64_ENCODING
from ingestd.cdc.native.format_readers import Look
from ingestd.cdc.native.layouts.constant_fields import (
    NULL,
    constant_fields,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.native.message_layout import Log, OneRow, chosen
from ingestd.cdc.native.module import Columns
from ingestd.cdc.native.position import run_lengths
from ingestd.cdc.normalized_events import TableNormalizer
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.cdc.row_plan import RowPlan
from ingestd.cdc.source_position import LAST_ROW, file_number, packed_positions
from ingestd.paimon.spec.data_types import RowKind

_WORDS = ("insert", "update", "delete", "bootstrap-insert")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.INSERT)
_SNAPSHOT, _COMMITS = 4, 1
"""Numbers of words in their choices."""
_DIGITS = 19
LOOK = Look((("database",), ("table",)), {("type",): texts_of(_WORDS)})


def maxwell_layout(form: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the layout of a table's messages; None if they can only be decoded in Python."""
    specs = plan.specs
    if specs is None:
        return None
    fields = [
        *constant_fields(form.constants, ("database", "table", "primary_key_columns")),
        ("type", True, words_spec(_WORDS)),
        ("data", True, specs.whole),
        ("old", False, specs.old),
        ("position", False, ("numbered", ":", _DIGITS)),
        ("xoffset", False, INT64_ENCODING.spec),
        ("commit", False, ("choice", (b"true", b"false", NULL))),
    ]
    return OneRow(open_object(fields), ("data",), ("old",), chosen(("type",), _KINDS), _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    size = len(kinds)
    places = columns[("position",)]
    pos, has_pos = numbers(places, size)
    heads = ["" if head is None else head.decode() for _, head in places.runs or ()]
    files = np.array([file_number(head) for head in heads], np.int64)
    xoffset, has_row = numbers(columns[("xoffset",)], size)
    commits = codes(columns[("commit",)]) == _COMMITS
    row = np.where(commits, LAST_ROW, xoffset)
    known = has_pos & (commits | has_row & (row >= 0) & (row < LAST_ROW))
    position = packed_positions(np.repeat(files, run_lengths(places, size)), pos, row)
    position[~known] = UNKNOWN_POSITION
    return Log(position, codes(columns[("type",)]) == _SNAPSHOT)

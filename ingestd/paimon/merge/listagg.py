"""The aggregate function listagg: texts joined with a delimiter.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.elements import first_of_each, list_array, list_offsets
from ingestd.paimon.merge.events import Chosen, MergeEvents, Ops, in_virtual_order, whole
from ingestd.paimon.merge.value_codes import value_codes
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.merge_rules import FieldFunction
from ingestd.paimon.spec.row_selection import Indices, Mask


def listagg(column: Column, events: MergeEvents, ops: Ops, function: FieldFunction) -> Column:
    """Return the strings of each key joined by the delimiter, without null and empty strings.

    With `distinct`, the strings after the first are split at the delimiter into words, and words
    that the result already contains are left out. A key whose strings are all null gets null.
    """
    array = whole(column)
    chosen = Chosen.of(events, events.since_set(ops) & events.valid(array))
    present = chosen.present
    chosen = in_virtual_order(events, ops, chosen)
    texts = array.take(events.rows[chosen.at])
    filled = _is_filled(texts)
    key, texts = chosen.key[filled], texts.filter(pa.array(filled))
    if function.distinct:
        key, texts = _distinct(key, texts, function.delimiter)
    offsets = list_offsets(key, present)
    lists = list_array(pa.list_(pa.string()), offsets, texts)
    delimiter: Any = function.delimiter
    joined: Any = pc.binary_join(lists, delimiter)
    return whole(joined)


def _is_filled(texts: Array) -> Mask:
    cells: Any = texts
    lengths: Any = pc.binary_length(cells)
    filled: Mask = lengths.to_numpy(zero_copy_only=False) > 0
    return filled


def _distinct(key: Indices, texts: Array, delimiter: str) -> tuple[Indices, Array]:
    """Return the texts to join, and the key of each.

    They are the first string of each key, unsplit, and the new words of its other strings.
    """
    # An empty delimiter joins without a gap, but words are still split at blanks.
    split: Any = pc.split_pattern(texts, delimiter or " ")
    sizes = np.diff(split.offsets.to_numpy())
    words, word_key = split.flatten(), np.repeat(key, sizes)
    leads = np.ones(len(key), np.bool_)
    leads[1:] = key[1:] != key[:-1]
    of_lead = np.repeat(leads, sizes)
    new = first_of_each(word_key, value_codes(words)) & ~of_lead & _is_filled(words)
    at = np.concatenate([np.flatnonzero(leads), len(texts) + np.flatnonzero(new)])
    both_keys = np.concatenate([key, word_key])
    at = at[np.lexsort((at, both_keys[at]))]
    both: Any = pa.concat_arrays([texts, words])
    return both_keys[at], both.take(at)

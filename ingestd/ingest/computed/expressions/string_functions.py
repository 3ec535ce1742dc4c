"""Functions on strings in SQL expressions.

As in SQL, positions start at 1, and negative positions count from the end.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.ingest.computed.expressions.cells import PlainKernel, strict
from ingestd.ingest.computed.expressions.function import (
    BOOLEAN,
    INT,
    TEXT,
    Argument,
    Function,
    Plan,
    argument_types_error,
    constant_number,
    constant_text,
    require,
)
from ingestd.ingest.computed.expressions.logic import check_pattern
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    NESTED_ROOTS,
    DataType,
)

_MOST = 2**31 - 1
_TEXTS: Values = pa.string()
_MOST_GROWTH, _SHORT_BYTES = 16, 4096
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""The element of a regular expression that matches one byte, which can be a part of a character."""


def _plain(name: str, kernel: PlainKernel, gives: DataType, arrow_type: pa.DataType) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        require(name, arguments, CHARACTER_ROOTS)
        return Plan(gives, (TEXT,) * len(arguments), strict(kernel, arrow_type))

    return Function(1, 1, plan)


def _of_text(name: str, kernel: PlainKernel) -> Function:
    return _plain(name, kernel, TEXT, _TEXTS)


def _joined_types(name: str, arguments: Sequence[Argument]) -> tuple[DataType, ...]:
    """Return the argument types of a concatenation: all arguments are cast to STRING.

    Raises ConfigError if a type has no plain text form.
    """
    refused = NESTED_ROOTS | BINARY_ROOTS | {"VARIANT", "BLOB"}
    if any(argument.type is not None and argument.type.root in refused for argument in arguments):
        raise argument_types_error(name, arguments)
    return (TEXT,) * len(arguments)


def _concat(arguments: Sequence[Argument]) -> Plan:
    takes = _joined_types("concat", arguments)

    def concat(*texts: Values) -> Values:
        return pc.binary_join_element_wise(*texts, "")

    return Plan(TEXT, takes, strict(concat, _TEXTS))


def _concat_ws(arguments: Sequence[Argument]) -> Plan:
    between = constant_text("the first argument of concat_ws", arguments[0])
    takes = _joined_types("concat_ws", arguments)

    def concat(_: Values, *texts: Values) -> Values:
        return pc.binary_join_element_wise(*texts, between, null_handling="skip")

    return Plan(TEXT, takes, strict(concat, _TEXTS))


def _substring(arguments: Sequence[Argument]) -> Plan:
    require("substring", arguments[:1], CHARACTER_ROOTS)
    start = constant_number("the second argument of substring", arguments[1], -_MOST, _MOST)
    count: int | None = None
    if len(arguments) > 2:
        count = constant_number("the third argument of substring", arguments[2], 0, _MOST)

    def substring(texts: Values, *_: Values) -> Values:
        if start >= 0:
            # A substring that starts before the string is shortened; position 0 counts as 1.
            begin = max(start - 1, 0)
            return pc.utf8_slice_codeunits(texts, begin, None if count is None else begin + count)
        return _from_end(texts, start, count)

    return Plan(TEXT, (TEXT, *(INT,) * (len(arguments) - 1)), strict(substring, _TEXTS))


def _from_end(texts: Values, start: int, count: int | None) -> Values:
    """Return up to `count` characters (None: all) of strings, from position `start` on.

    `start` is negative and counts from the end: -1 is the last character.
    """
    if count is None or count >= -start:
        return pc.utf8_slice_codeunits(texts, start, None)
    ending = start + count
    # If the string is shorter, the missing characters before it count towards the length.
    return pc.utf8_slice_codeunits(texts, start, ending)


def _ends(name: str, *, left: bool) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        require(name, arguments[:1], CHARACTER_ROOTS)
        count = constant_number(f"the second argument of {name}", arguments[1], 0, _MOST)

        def part(texts: Values, _: Values) -> Values:
            if left:
                return pc.utf8_slice_codeunits(texts, 0, count)
            return pc.utf8_slice_codeunits(texts, -count if count else _MOST, None)

        return Plan(TEXT, (TEXT, INT), strict(part, _TEXTS))

    return Function(2, 2, plan)


def _pad(name: str, kernel: PlainKernel) -> Function:
    """Return a function that pads or truncates strings to a number of characters."""

    def plan(arguments: Sequence[Argument]) -> Plan:
        _joined_types(name, arguments[:1])
        width = constant_number(f"the second argument of {name}", arguments[1], 0, 10_000)
        sign = " "
        if len(arguments) > 2:
            sign = constant_text(f"the third argument of {name}", arguments[2])
        if len(sign) != 1:
            raise ConfigError(f"{name} pads with one character")

        def pad(texts: Values, *_: Values) -> Values:
            return pc.utf8_slice_codeunits(kernel(texts, width, sign), 0, width)

        takes = (TEXT, INT, TEXT)[: len(arguments)]
        return Plan(TEXT, takes, strict(pad, _TEXTS))

    return Function(2, 3, plan)


def _replace(arguments: Sequence[Argument]) -> Plan:
    require("replace", arguments, CHARACTER_ROOTS)
    old = constant_text("the second argument of replace", arguments[1])
    new = constant_text("the third argument of replace", arguments[2])

    def replace(texts: Values, *_: Values) -> Values:
        if not old:
            return texts
        _check_growth(texts, new, lambda chosen: pc.count_substring(chosen, old))
        return pc.replace_substring(texts, old, new)

    return Plan(TEXT, (TEXT, TEXT, TEXT), strict(replace, _TEXTS))


def _regexp_replace(arguments: Sequence[Argument]) -> Plan:
    require("regexp_replace", arguments, CHARACTER_ROOTS)
    pattern = constant_text("the second argument of regexp_replace", arguments[1])
    new = constant_text("the third argument of regexp_replace", arguments[2])
    if _ONE_BYTE.search(pattern):
        raise ConfigError("regexp_replace does not take \\C, which can match a part of a character")

    def replace(texts: Values, *_: Values) -> Values:
        _check_growth(texts, new, lambda chosen: pc.count_substring_regex(chosen, pattern))
        return pc.replace_substring_regex(texts, pattern, new)

    check_pattern(pattern, replace)
    return Plan(TEXT, (TEXT, TEXT, TEXT), strict(replace, _TEXTS))


_MASKED = (r"\p{Lu}", r"\p{Ll}", r"\p{Nd}", r"[^\p{Lu}\p{Ll}\p{Nd}\x{FDD0}-\x{FDD2}]")
"""Classes of characters: capitals, small letters, digits, others."""
_MARKS = ("\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3")
"""Noncharacters, which stand for the replacements until all classes are replaced."""


def _mask(arguments: Sequence[Argument]) -> Plan:
    """Plan MASK, which replaces capitals, small letters, digits and other characters.

    A replacement of NULL keeps the characters of its class, as by default those of the last class.
    """
    require("mask", arguments, CHARACTER_ROOTS)
    signs: list[str | None] = ["X", "x", "n", None]
    for index, argument in enumerate(arguments[1:]):
        null = argument.is_constant and argument.constant is None
        signs[index] = None if null else constant_text("a replacement of mask", argument)
        if not null and len(signs[index] or "") != 1:
            raise ConfigError("a replacement of mask is one character, or NULL")
    classes = zip(_MASKED, _MARKS, signs, strict=True)
    chosen = [(characters, mark, sign) for characters, mark, sign in classes if sign is not None]

    def mask(texts: Values, *_: Values) -> Values:
        for characters, mark, _sign in chosen:
            texts = pc.replace_substring_regex(texts, characters, mark)
        for _characters, mark, sign in chosen:
            texts = pc.replace_substring(texts, mark, sign)
        return texts

    return Plan(TEXT, (TEXT,) * len(arguments), strict(mask, _TEXTS))


def _check_growth(texts: Values, new: str, count: Callable[[Values], Values]) -> None:
    """Raise UnsupportedError if replacements would make strings too large.

    A string may grow to 16 times its size or 4 KiB, whichever is larger, and all strings together
    to 2 GiB: Arrow would create an invalid array beyond that. `count` returns the number of
    replacements in each string, and `new` is the replacement.
    """
    sizes = _numbers(pc.binary_length(texts))
    limits = np.maximum(_MOST_GROWTH * sizes, _SHORT_BYTES)
    # The matched part may be repeated for each group reference in the replacement.
    copied, added = sizes * (1 + new.count("\\")), len(new.encode())
    result_sizes = copied + (sizes + 1) * added
    chosen = np.flatnonzero(result_sizes > limits)
    if len(chosen):
        counts = _numbers(count(texts.take(pa.array(chosen))))
        result_sizes[chosen] = np.where(counts, copied[chosen] + counts * added, sizes[chosen])
    if np.any(result_sizes > limits) or result_sizes.sum() > _MOST:
        raise UnsupportedError("a text would become too large by replacements")


def _numbers(values: Values) -> npt.NDArray[np.int64]:
    """Return integers as a NumPy array (n,), with 0 for null."""
    filled: Values = pc.fill_null(values, 0)
    return np.asarray(filled).astype(np.int64)


def _has(name: str, kernel: PlainKernel) -> Function:
    def plan(arguments: Sequence[Argument]) -> Plan:
        require(name, arguments, CHARACTER_ROOTS)
        searched = constant_text(f"the second argument of {name}", arguments[1])

        def has(texts: Values, _: Values) -> Values:
            return kernel(texts, searched)

        return Plan(BOOLEAN, (TEXT, TEXT), strict(has, pa.bool_()))

    return Function(2, 2, plan)


def _split_part(arguments: Sequence[Argument]) -> Plan:
    require("split_part", arguments[:2], CHARACTER_ROOTS)
    between = constant_text("the second argument of split_part", arguments[1])
    number = constant_number("the third argument of split_part", arguments[2], 1, _MOST)
    if not between:
        raise ConfigError("split_part needs a separator that is not empty")

    def part(texts: Values, *_: Values) -> Values:
        parts = pc.split_pattern(pc.fill_null(texts, ""), between)
        counts = np.asarray(pc.list_value_length(parts))
        there = counts >= number
        indices = np.where(there, np.cumsum(counts) - counts + number - 1, 0)
        picked: Values = parts.flatten().take(pa.array(indices))
        chosen: Values = pc.if_else(pa.array(there), picked, "")
        return pc.if_else(texts.is_null(), pa.scalar(None, pa.string()), chosen)

    return Plan(TEXT, (TEXT, TEXT, INT), strict(part, _TEXTS))


def _length(arguments: Sequence[Argument]) -> Plan:
    require("length", arguments, CHARACTER_ROOTS | BINARY_ROOTS)
    own = arguments[0].type
    if own is not None and own.root in BINARY_ROOTS:
        return Plan(INT, (own,), strict(lambda data: pc.binary_length(data), pa.int32()))
    return Plan(INT, (TEXT,), strict(lambda text: pc.utf8_length(text), pa.int32()))


TEXT_FUNCTIONS: Mapping[str, Function] = {
    "||": Function(2, 2, _concat),
    "concat": Function(1, None, _concat),
    "concat_ws": Function(2, None, _concat_ws),
    "lower": _of_text("lower", pc.utf8_lower),
    "upper": _of_text("upper", pc.utf8_upper),
    "trim": _of_text("trim", lambda texts: pc.utf8_trim(texts, " ")),
    "ltrim": _of_text("ltrim", lambda texts: pc.utf8_ltrim(texts, " ")),
    "rtrim": _of_text("rtrim", lambda texts: pc.utf8_rtrim(texts, " ")),
    "reverse": _of_text("reverse", pc.utf8_reverse),
    "length": Function(1, 1, _length),
    "char_length": Function(1, 1, _length),
    "substring": Function(2, 3, _substring),
    "substr": Function(2, 3, _substring),
    "left": _ends("left", left=True),
    "right": _ends("right", left=False),
    "lpad": _pad("lpad", pc.utf8_lpad),
    "rpad": _pad("rpad", pc.utf8_rpad),
    "replace": Function(3, 3, _replace),
    "regexp_replace": Function(3, 3, _regexp_replace),
    "mask": Function(1, 5, _mask),
    "starts_with": _has("starts_with", pc.starts_with),
    "ends_with": _has("ends_with", pc.ends_with),
    "contains": _has("contains", pc.match_substring),
    "split_part": Function(3, 3, _split_part),
}

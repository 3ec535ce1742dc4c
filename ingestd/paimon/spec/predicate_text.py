"""Parse predicates in the syntax of `ingestd read --where`.

    status = 'open' AND (amount >= 10.5 OR paid IS NULL) AND day NOT IN ('2024-01-01')

Operators: = != <> < <= > >=, [NOT] IN (...), [NOT] BETWEEN ... AND ..., [NOT] LIKE, IS [NOT] NULL,
AND, OR, NOT and parentheses. Texts are in single quotes (a quote within a text is doubled), column
names may be in double quotes or backticks.
"""

import re
from collections.abc import Mapping, Sequence

from ingestd.errors import ArgumentError
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataField
from ingestd.paimon.spec.literals import parse_literal
from ingestd.paimon.spec.predicate import (
    And,
    Comparison,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Value,
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`[^`]*`)
    | (?P<operator><>|!=|<=|>=|==|[=<>(),])
    | (?P<word>[^\s'"`<>=!(),]+)
    )""",
    re.VERBOSE,
)
_WORDS = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "TRUE", "FALSE"})
_OPERATORS: Mapping[str, str] = {
    "=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_Token = tuple[str, str]


def parse_predicate(text: str, fields: Sequence[DataField]) -> Predicate:
    """Parse a predicate for a table with these columns.

    Raises ArgumentError for a syntax error or an unknown column, quoting the predicate, and for a
    value that is invalid for its column, naming the column.
    """
    parser = _Parser(text, {field.name: field for field in fields})
    predicate = parser.disjunction()
    parser.end()
    return predicate


class _Parser:
    def __init__(self, text: str, fields: Mapping[str, DataField]) -> None:
        self._text = text
        self._fields = fields
        self._tokens = self._split()
        self._at = 0

    def disjunction(self) -> Predicate:
        parts = [self._conjunction()]
        while self._accept("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def end(self) -> None:
        kind, token = self._peek()
        if kind != "end":
            raise self._wrong(f"'{token}' is not expected here")

    def _conjunction(self) -> Predicate:
        parts = [self._negation()]
        while self._accept("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self) -> Predicate:
        if self._accept("NOT"):
            return Not(self._negation())
        if self._accept("("):
            inner = self.disjunction()
            self._expect(")")
            return inner
        return self._condition()

    def _condition(self) -> Predicate:
        field = self._column()
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            return _negated(IsNull(field.name), negated)
        kind, token = self._peek()
        if kind == "operator" and token in _OPERATORS:
            self._at += 1
            return Comparison(field.name, _OPERATORS[token], self._value(field))
        negated = self._accept("NOT")
        return _negated(self._set_condition(field), negated)

    def _set_condition(self, field: DataField) -> Predicate:
        if self._accept("IN"):
            self._expect("(")
            values = [self._value(field)]
            while self._accept(","):
                values.append(self._value(field))
            self._expect(")")
            return IsIn(field.name, tuple(values))
        if self._accept("BETWEEN"):
            low = self._value(field)
            self._expect("AND")
            high = self._value(field)
            return And((Comparison(field.name, ">=", low), Comparison(field.name, "<=", high)))
        if self._accept("LIKE"):
            if field.type.root not in CHARACTER_ROOTS:
                raise self._wrong(f"LIKE is for texts, and column {field.name} is {field.type}")
            return Like(field.name, str(self._value(field)))
        raise self._wrong(f"a condition is missing after column {field.name}")

    def _column(self) -> DataField:
        kind, token = self._next()
        name = token
        if kind == "quoted":
            name = token[1:-1].replace('""', '"') if token[0] == '"' else token[1:-1]
        elif kind != "word" or token.upper() in _WORDS:
            raise self._wrong(f"a column name is expected instead of '{token}'")
        if name not in self._fields:
            raise self._wrong(f"unknown column '{name}'; the columns are {', '.join(self._fields)}")
        return self._fields[name]

    def _value(self, field: DataField) -> Value:
        kind, token = self._next()
        if kind not in ("text", "word") or token.upper() == "NULL":
            raise self._wrong(
                f"a value is expected instead of '{token}'; write texts in single quotes; "
                "nulls are found with IS NULL"
            )
        text = token[1:-1].replace("''", "'") if kind == "text" else token
        if kind == "word" and field.type.root in CHARACTER_ROOTS:
            raise self._wrong(f"column {field.name} is {field.type}: write '{token}' in quotes")
        return parse_literal(text, field)

    def _accept(self, token: str) -> bool:
        kind, next_token = self._peek()
        if kind not in ("text", "quoted") and next_token.upper() == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise self._wrong(f"'{token}' is expected instead of '{self._peek()[1]}'")

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        kind, token = self._peek()
        if kind != "end":
            self._at += 1
        return kind, token

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        at, text = 0, self._text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._wrong(f"'{text[at:].strip()}' cannot be understood")
            tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        return [*tokens, ("end", "the end")]

    def _wrong(self, message: str) -> ArgumentError:
        return ArgumentError(f'predicate "{self._text}": {message}')


def _negated(predicate: Predicate, negated: bool) -> Predicate:
    return Not(predicate) if negated else predicate

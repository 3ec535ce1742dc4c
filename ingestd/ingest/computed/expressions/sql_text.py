"""Parse SQL expressions into nodes; no other module uses the SQL parser.

The parser provides only the grammar. It has no function definitions, so each call keeps its name
and arguments, and no dialect is translated into another.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import IsPredicatePrecedence, Parser
from sqlglot.tokens import Tokenizer

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.nodes import (
    CallNode,
    CastNode,
    ColumnNode,
    Constant,
    ConstantNode,
    Node,
    wrong,
)
from ingestd.paimon.spec.data_types import DataType

MAX_LENGTH = 10_000
"""The maximum length of an expression in characters."""
_MAX_DIGITS = 39
_UNDERSTOOD = frozenset(
    {
        *("this", "expression", "expressions", "quoted", "is_string", "negate", "safe", "to"),
        *("low", "high", "symmetric", "ifs", "default", "table", "db", "catalog"),
        *("query", "unnest"),
    }
)
"""The parts of a parsed expression that `_node` translates or refuses by itself."""
_WORDS = frozenset({"current_date", "current_timestamp"})
"""The functions that are called without parentheses."""
_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "is distinct from",
    exp.And: "and", exp.Or: "or", exp.DPipe: "||",
    exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike",
}  # fmt: skip
_PLAIN: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT",
    "BIGINT": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "DATE": "DATE",
    "TEXT": "STRING", "STRING": "STRING", "BYTES": "BYTES",
}  # fmt: skip
_UNSIZED: Mapping[str, str] = {
    "VARCHAR": "STRING", "CHAR": "STRING", "BINARY": "BYTES", "VARBINARY": "BYTES",
}  # fmt: skip
_WITH_PRECISION: Mapping[str, str] = {
    "TIME": "TIME", "TIMESTAMP": "TIMESTAMP", "TIMESTAMPNTZ": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP_LTZ", "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ", "DATETIME": "TIMESTAMP",
}  # fmt: skip


class _Tokens(Tokenizer):
    QUOTES = ["'"]  # noqa: RUF012  (the parser's own way to say it)
    IDENTIFIERS = ['"', "`"]  # noqa: RUF012
    STRING_ESCAPES = ["'"]  # noqa: RUF012


class _Grammar(Parser):
    # As in PostgreSQL and Spark, `a = b IS NULL` is `(a = b) IS NULL`.
    IS_PREDICATE_PRECEDENCE = IsPredicatePrecedence.LOW
    FUNCTIONS = {}  # noqa: RUF012
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")
    }
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        "CASE": Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }


class _PlainSql(Dialect):
    Tokenizer = _Tokens
    Parser = _Grammar


def read_sql(text: str) -> Node:
    """Parse an expression into its syntax tree.

    Raises ConfigError, with the position where it is known, if the expression cannot be parsed or
    contains syntax that is not supported.
    """
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"it has {len(text)} characters, at most {MAX_LENGTH} are allowed")
    try:
        statements = _PlainSql().parse(text)
        if len(statements) != 1 or statements[0] is None:
            raise ConfigError("it is not a single expression")
        return _node(statements[0])
    except ParseError as error:
        raise ConfigError(_explained(error, text)) from error
    except SqlglotError as error:
        raise ConfigError(f"it cannot be parsed: {error}") from error
    except RecursionError as error:
        raise ConfigError("its parentheses are nested too deeply") from error


def _explained(error: ParseError, text: str) -> str:
    first = error.errors[0] if error.errors else {}
    before, marked = first.get("start_context") or "", first.get("highlight") or ""
    if not marked:
        return f"it cannot be parsed: {error}"
    at = text.find(before + marked) + len(before) if len(before) < 100 else -1
    position = f"at character {at + 1}: " if at >= 0 else ""
    return f"{position}it cannot be parsed from '{marked}' on"


def _node(parsed: exp.Expr) -> Node:
    make = _MAKERS.get(type(parsed))
    if make is None:
        raise wrong(_here(parsed), f"{parsed.key.upper()} is not supported in an expression")
    for part, value in parsed.args.items():
        if value and part not in _UNDERSTOOD:
            message = f"{part.upper()} of {parsed.key.upper()} is not supported in an expression"
            raise wrong(_here(parsed), message)
    node = make(parsed)
    # The parser marks NOT LIKE and NOT ILIKE, and puts other negated predicates into a NOT.
    return CallNode("not", (node,), node.at) if parsed.args.get("negate") else node


def _operator(parsed: exp.Expr) -> Node:
    return _call(_OPERATORS[type(parsed)], parsed, parsed.this, parsed.expression)


def _here(parsed: exp.Expr) -> ConstantNode:
    return ConstantNode(None, _position(parsed))


def _position(parsed: exp.Expr) -> int:
    """Return the position of an expression in the text: the smallest position of its tokens."""
    positions = [node.meta["start"] for node in parsed.walk() if "start" in node.meta]
    return min(positions, default=0)


def _call(function: str, parsed: exp.Expr, *arguments: exp.Expr) -> Node:
    return CallNode(function, tuple(_node(argument) for argument in arguments), _position(parsed))


def _column(parsed: exp.Expr) -> Node:
    name = parsed.this
    if parsed.args.get("table") is not None or not isinstance(name, exp.Identifier):
        raise wrong(_here(parsed), f"'{parsed.sql()}' is not a column; quote names with dots")
    if not name.quoted and name.this.lower() in _WORDS:
        return CallNode(name.this.lower(), (), _position(parsed))
    return ColumnNode(name.this, _position(parsed))


def _literal(parsed: exp.Expr) -> Node:
    text = parsed.this
    if parsed.args.get("is_string"):
        return ConstantNode(text, _position(parsed))
    if len(text) > _MAX_DIGITS:
        raise wrong(_here(parsed), f"a number has at most {_MAX_DIGITS - 1} digits")
    try:
        value: Constant = float(text) if "e" in text.lower() else Decimal(text)
    except (ArithmeticError, ValueError) as error:
        raise wrong(_here(parsed), f"'{text}' is not a number") from error
    if isinstance(value, Decimal) and "." not in text:
        value = int(value)
    return ConstantNode(value, _position(parsed))


def _negative(parsed: exp.Expr) -> Node:
    inner = _node(parsed.this)
    value = inner.value if isinstance(inner, ConstantNode) else None
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return ConstantNode(-value, inner.at)
    return CallNode("negative", (inner,), inner.at)


def _is(parsed: exp.Expr) -> Node:
    what = parsed.expression
    if isinstance(what, exp.Null):
        return _call("is null", parsed, parsed.this)
    if isinstance(what, exp.Boolean):
        return _call("is true" if what.this else "is false", parsed, parsed.this)
    raise wrong(_here(parsed), "IS must be followed by NULL, TRUE or FALSE")


def _in(parsed: exp.Expr) -> Node:
    if parsed.args.get("query") is not None or parsed.args.get("unnest") is not None:
        raise wrong(_here(parsed), "IN takes a list of values, not a query")
    return _call("in", parsed, parsed.this, *parsed.expressions)


def _between(parsed: exp.Expr) -> Node:
    value, at = _node(parsed.this), _position(parsed)
    low, high = _node(parsed.args["low"]), _node(parsed.args["high"])

    def within(least: Node, most: Node) -> Node:
        above, below = CallNode(">=", (value, least), at), CallNode("<=", (value, most), at)
        return CallNode("and", (above, below), at)

    if not parsed.args.get("symmetric"):
        return within(low, high)
    return CallNode("or", (within(low, high), within(high, low)), at)


def _escape(parsed: exp.Expr) -> Node:
    like = _node(parsed.this)
    if isinstance(like, CallNode) and like.function == "not":
        return CallNode("not", (_escaped(parsed, like.arguments[0]),), like.at)
    return _escaped(parsed, like)


def _escaped(parsed: exp.Expr, like: Node) -> Node:
    if not isinstance(like, CallNode) or like.function not in ("like", "ilike"):
        raise wrong(_here(parsed), "ESCAPE must follow LIKE")
    return CallNode(like.function, (*like.arguments, _node(parsed.expression)), like.at)


def _case(parsed: exp.Expr) -> Node:
    subject = None if parsed.this is None else _node(parsed.this)
    arguments: list[Node] = []
    for branch in parsed.args["ifs"]:
        condition = _node(branch.this)
        if subject is not None:
            condition = CallNode("=", (subject, condition), condition.at)
        arguments += [condition, _node(branch.args["true"])]
    otherwise = parsed.args.get("default")
    at = _position(parsed)
    arguments.append(ConstantNode(None, at) if otherwise is None else _node(otherwise))
    return CallNode("case", tuple(arguments), at)


def _cast(parsed: exp.Expr) -> Node:
    return CastNode(
        _node(parsed.this), _type(parsed), isinstance(parsed, exp.TryCast), _position(parsed.this)
    )


def _type(parsed: exp.Expr) -> DataType:
    to = parsed.args["to"]
    sizes = [
        expression.this
        for expression in to.expressions
        if isinstance(expression, exp.DataTypeParam)
    ]
    try:
        if len(sizes) != len(to.expressions) or to.args.get("collate"):
            raise ValueError
        word = to.args.get("kind") if to.this == exp.DType.USERDEFINED else to.this.name
        return type_of_words(str(word), [int(size.this) for size in sizes])
    except ValueError as error:
        raise wrong(_here(parsed), f"unknown type {to.sql()}") from error


def _extract(parsed: exp.Expr) -> Node:
    return _call(str(parsed.this.name).lower(), parsed, parsed.expression)


def _function(parsed: exp.Expr) -> Node:
    if any(isinstance(expression, exp.Star) for expression in parsed.expressions):
        raise wrong(_here(parsed), f"{parsed.this}(*) is not a function of a row")
    return _call(str(parsed.this).lower(), parsed, *parsed.expressions)


_MAKERS: Mapping[type[exp.Expr], Callable[[exp.Expr], Node]] = {
    **dict.fromkeys(_OPERATORS, _operator),
    exp.Paren: lambda parsed: _node(parsed.this),
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda parsed: ConstantNode(bool(parsed.this), _position(parsed)),
    exp.Null: lambda parsed: ConstantNode(None, _position(parsed)),
    exp.Neg: _negative,
    exp.Not: lambda parsed: _call("not", parsed, parsed.this),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Anonymous: _function,
}


def type_of_words(word: str, sizes: Sequence[int]) -> DataType:
    """Return the type with the SQL name `word` and the parameters `sizes`, such as (10, 2).

    Raises ValueError if the name is unknown, or does not allow the parameters.
    """
    word = word.upper()
    if word in _PLAIN and not sizes:
        return DataType(_PLAIN[word])
    if word in _UNSIZED and len(sizes) <= 1:
        return DataType(word, length=sizes[0]) if sizes else DataType(_UNSIZED[word])
    if word in _WITH_PRECISION and len(sizes) <= 1:
        return DataType(_WITH_PRECISION[word], precision=sizes[0] if sizes else None)
    if word == "DECIMAL" and len(sizes) <= 2:
        precision = sizes[0] if sizes else None
        return DataType("DECIMAL", precision=precision, scale=sizes[1] if sizes[1:] else None)
    raise ValueError(f"unknown type {word}")

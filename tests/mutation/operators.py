"""Mutations of Python source: small changes of behaviour that a test should notice.

Not mutated, because no test should: docstrings, texts, annotations, decorators, what is raised
and logged, and `strict=` of `zip`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
EMPTY = {"list": "[]", "Sequence": "()", "tuple": "()", "dict": "{}", "Mapping": "{}"}
EMPTY |= {"set": "set()", "frozenset": "frozenset()", "bytes": "b''", "Iterator": "iter(())"}
Change = tuple[str, ast.expr | ast.stmt, ast.expr | ast.stmt]
"""Name of the operator, what is replaced, and by what."""
LOGS = ("log", "_log", "logger", "warnings", "LOG", "_LOG")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one place: characters `start` to `end` of a source become `text`."""

    start: int
    end: int
    text: str
    line: int
    operator: str
    function: str | None
    """Qualified name of the innermost named function; None in the body of a module or class."""

    def apply(self, source: str) -> str:
        """Return the source of the mutant."""
        return source[: self.start] + self.text + source[self.end :]


def mutations(source: str) -> list[Mutation]:
    """Return all mutations of a module."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return len(source.encode()[: starts[line - 1] + column].decode())

    return [
        Mutation(
            place(old.lineno, old.col_offset),
            place(old.end_lineno or 0, old.end_col_offset or 0),
            ast.unparse(new) if isinstance(new, ast.stmt) else f"({ast.unparse(new)})",
            old.lineno,
            operator,
            function,
        )
        for node, function, returns in _places(ast.parse(source), "", None, "")
        for operator, old, new in _changes(node, function, returns)
    ]


def _places(
    node: ast.AST, prefix: str, function: str | None, returns: str
) -> Iterator[tuple[ast.expr | ast.stmt, str | None, str]]:
    """Yield nodes with the function around them and the name of its return type."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = prefix + node.name
        returns = ast.unparse(node.returns).split("[")[0] if node.returns else ""
        prefix = f"{function}.<locals>."
        children: list[ast.AST] = [*node.args.defaults, *node.args.kw_defaults, *node.body]  # type: ignore[list-item]  # None is skipped
    elif isinstance(node, ast.ClassDef):
        prefix, children = f"{prefix}{node.name}.", [*node.body]
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
        children = [node.args[0]]
    else:
        children = [*ast.iter_child_nodes(node)]
    for child in children:
        if child is None or _left_out(child):
            continue
        if isinstance(child, ast.expr | ast.stmt):
            yield child, function, returns
        yield from _places(child, prefix, function, returns)


def _left_out(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.keyword(arg="strict"):
            return True
        case ast.Expr(value=ast.Constant()) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name in LOGS
        case ast.Call(func=ast.Name(id=name)):
            return name.endswith(("Error", "Warning", "TypeVar", "NewType")) or name == "cast"
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name == "__all__"
    return False


def _changes(node: ast.expr | ast.stmt, function: str | None, returns: str) -> Iterator[Change]:
    if isinstance(node, ast.BinOp):
        if type(node.op) in ARITHMETIC and not _only_types(node, function):
            other = ARITHMETIC[type(node.op)]()
            yield "arithmetic", node, ast.BinOp(node.left, other, node.right)
    elif isinstance(node, ast.stmt):
        yield from _changed_statements(node, returns)
    else:
        yield from _changed_expressions(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
        node.test, ast.Compare | ast.UnaryOp
    ):
        yield "negation", node.test, ast.UnaryOp(ast.Not(), node.test)


def _changed_expressions(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in COMPARISONS[type(op)]:
                yield "comparison", node, ast.Compare(left, [other()], [right])
        case ast.BoolOp(op=op, values=values):
            swapped = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", node, ast.BoolOp(swapped, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not removed", node, operand
        case ast.Constant(value=bool(value)):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(value=int(value)):
            for step in (1, -1):
                yield "constant", node, ast.Constant(value + step)


def _changed_statements(node: ast.stmt, returns: str) -> Iterator[Change]:
    match node:
        case ast.Return(value=ast.expr() as value) if returns == "bool":
            if not isinstance(value, ast.Constant | ast.UnaryOp):
                yield "return negated", node, ast.Return(ast.UnaryOp(ast.Not(), value))
        case ast.Return(value=ast.expr() as value):
            empty = EMPTY.get(returns, "None")
            if ast.unparse(value) not in {empty, "None"}:
                yield "return empty", node, ast.Return(ast.parse(empty, mode="eval").body)
        case ast.Expr(value=ast.Call() as call) if not _left_out(call):
            yield "statement dropped", node, ast.Pass()
        case ast.Break():
            yield "break/continue", node, ast.Continue()
        case ast.Continue():
            yield "break/continue", node, ast.Break()


def _only_types(node: ast.BinOp, function: str | None) -> bool:
    """Return whether the operands are types or texts, so that every test would fail."""
    sides = (node.left, node.right)
    texts = (isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
    union = isinstance(node.op, ast.BitOr) and function is None
    return union or any(texts) or any(isinstance(side, ast.JoinedStr) for side in sides)

"""Syntax trees of the project's own files."""

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file, the same object each time.

    The garbage collector waits: a collection in the middle of a parse can make CPython 3.11.7
    fail (python/cpython#106905).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        if was_enabled:
            gc.enable()

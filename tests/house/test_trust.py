"""What comes from outside is data and never code: each exception has a name and a reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ingestd"
RUNS_WHAT_IT_READS = {
    ("pickle", "load"), ("pickle", "loads"), ("pickle", "Unpickler"),
    ("cloudpickle", "load"), ("cloudpickle", "loads"),
    ("marshal", "load"), ("marshal", "loads"), ("shelve", "open"), ("dill", "loads"),
    ("yaml", "unsafe_load"), ("yaml", "full_load"), ("yaml", "load"),
    ("builtins", "eval"), ("builtins", "exec"), ("builtins", "compile"),
    ("os", "system"), ("os", "popen"),
}  # fmt: skip
"""Calls that turn bytes or texts into code."""
ALLOWED = {
    # A table's handle, which the driver packed and Spark brought to its own worker.
    ("paimon/table/metadata/file_store_table.py", "pickle.loads"),
    # The report of stage 1, from a worker of the same query to another.
    ("ingest/rows/blobs.py", "pickle.loads"),
    # What a worker of the same query hands back to the driver through Spark.
    ("spark/stages.py", "pickle.loads"),
    # What an earlier run of the same batch decoded, in a folder that only this user can read.
    ("ingest/rows/chunk_cache.py", "pickle.load"),
    # With a loader that makes texts, lists and dictionaries only.
    ("config/preload.py", "yaml.load"),
}
PIPES_OF_OURS = {"daemon/maintenance_process.py"}
"""`Connection.recv` unpickles: a socket pair between the daemon and the process that it started."""


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Call):
                yield str(path.relative_to(PACKAGE)), called(node.func), node


def called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return f"builtins.{function.id}" if isinstance(function, ast.Name) else ""


def test_nothing_unpickles_or_evaluates_but_what_is_named_here() -> None:
    dangerous = {f"{module}.{name}" for module, name in RUNS_WHAT_IT_READS}
    assert {(file, name) for file, name, _ in calls() if name in dangerous} == ALLOWED


def test_names_that_hide_such_calls_are_not_imported() -> None:
    modules = {module for module, _ in RUNS_WHAT_IT_READS} - {"builtins", "os"}
    hidden = [
        f"{path.relative_to(PACKAGE)}: from {node.module}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] in modules
        and {alias.name for alias in node.names} & {name for _, name in RUNS_WHAT_IT_READS}
    ]
    assert hidden == []


def test_only_the_pipe_to_our_own_process_carries_objects() -> None:
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "multiprocessing.connection" in path.read_text()
    }
    assert users == PIPES_OF_OURS


def test_arrays_are_read_without_objects_and_no_shell_is_asked() -> None:
    for file, _, call in calls():
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for name in ("allow_pickle", "shell"):
            value = given.get(name)
            assert value is None or (isinstance(value, ast.Constant) and not value.value), file

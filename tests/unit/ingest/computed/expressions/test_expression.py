"""Expressions travel to tasks, and cost nothing where there are none."""

import pickle
import subprocess
import sys

from ingestd.ingest.computed.expressions.expression import read_expression

LAZY = """
import sys
import ingestd.ingest.settings.context
loaded = [name for name in sys.modules if name.startswith("sqlglot") or name.endswith("bound")]
sys.exit(" ".join(loaded) or 0)
"""


def test_expressions_are_pickled_as_nodes() -> None:
    expression = read_expression("case when a in (1, 2) then cast(b as int) / 2 end")
    data = pickle.dumps(expression)
    assert b"sqlglot" not in data
    assert pickle.loads(data) == expression


def test_columns_are_named_once_and_use_of_the_clock_is_known() -> None:
    assert read_expression("a + b * a").columns == ("a", "b")
    assert read_expression("coalesce(a, cast(now() as string))").depends_on_time
    assert not read_expression("upper(a)").depends_on_time


def test_parser_and_functions_are_loaded_only_for_an_expression() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

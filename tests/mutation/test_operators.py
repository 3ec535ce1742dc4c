"""Mutations change what a test can notice, one place at a time, and nothing else."""

import pytest

from tests.mutation.operators import mutations


def mutants(source: str) -> set[str]:
    return {mutation.apply(source) for mutation in mutations(source)}


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", {"(a <= b)", "(a >= b)"}),
        ("a is b", {"(a is not b)"}),
        ("a and b", {"(a or b)"}),
        ("x = not a", {"x = (a)"}),
        ("a - b", {"(a + b)"}),
        ("x = 5", {"x = (6)", "x = (4)"}),
        ("x = True", {"x = (False)"}),
        ("if a: b", {"if (not a): b"}),
        ("f(a)", {"pass"}),
        ("while a < b: break", {"while (a <= b): break", "while (a >= b): break"}
         | {"while a < b: continue"}),
        ("def f() -> list[int]: return a", {"def f() -> list[int]: return []"}),
        ("def f() -> bool: return a", {"def f() -> bool: return not a"}),
        ("def f(): return a", {"def f(): return None"}),
    ],
)  # fmt: skip
def test_each_operator_changes_its_place(source: str, changed: set[str]) -> None:
    assert mutants(source) == changed


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of 1."""',
        "x: Literal[1]",
        "@cached(1)\ndef f(a: Literal[1] = None) -> Literal[2]: pass",
        "raise ConfigError('text', 1) from None",
        "log.info('text', 1)",
        "zip(strict=True)",
        "x = f'{1 + 1}'",
        "'a' + b",
        "Number = int | float",
        "isinstance(a, int | float)",
    ],
)
def test_what_no_test_should_notice_stays(source: str) -> None:
    assert mutants(source) - {"pass"} == set()


def test_a_mutation_names_its_line_and_its_function() -> None:
    source = "class A:\n    def f(self):\n        é, g = 'é', lambda: 1 == a\n"
    found = {(change.line, change.function) for change in mutations(source)}
    assert found == {(3, "A.f")}
    assert source.replace("1 == a", "(1 != a)") in mutants(source)

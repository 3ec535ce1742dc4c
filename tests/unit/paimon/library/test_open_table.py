"""The names that programs use, and what they promise."""

import inspect
import subprocess
import sys

import pytest

import ingestd.paimon as paimon


def test_every_stable_name_is_there_and_documented() -> None:
    for name in paimon.__all__:
        assert inspect.getdoc(getattr(paimon, name)), name


def test_every_public_method_of_the_library_is_typed_and_documented() -> None:
    for owner in (paimon.Table, paimon.Scan, paimon.Warehouse, paimon.Writer):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                assert inspect.getdoc(method), name
                assert "return" in method.__annotations__, name


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = paimon.nope  # type: ignore[attr-defined]


def test_packages_below_are_imported_without_the_library() -> None:
    """What the daemon's processes pay for importing the specification is the specification."""
    code = "import sys, ingestd.paimon.spec.paths; print('ingestd.paimon.library' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

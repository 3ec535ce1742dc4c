"""Floats and doubles as Java prints them; the golden texts come from Java 17."""

import math
import struct
from pathlib import Path

import pytest

from ingestd.paimon.spec.float_text import java_double, java_float

GOLDEN = Path(__file__).parents[3] / "golden"


def test_golden_floats_have_the_digits_of_java() -> None:
    lines = [line.split() for line in (GOLDEN / "java_floats.txt").read_text().splitlines()]
    values = [struct.unpack("<f", struct.pack("<I", int(bits)))[0] for bits, _ in lines]
    assert [java_float(value) for value in values] == [text for _, text in lines]
    assert len(lines) > 200


def test_golden_doubles_have_the_digits_of_java() -> None:
    lines = [line.split() for line in (GOLDEN / "java_doubles.txt").read_text().splitlines()]
    values = [struct.unpack("<d", struct.pack("<Q", int(bits)))[0] for bits, _ in lines]
    assert [java_double(value) for value in values] == [text for _, text in lines]
    assert len(lines) > 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (-1.5, "-1.5"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e23, "9.999999999999999E22"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_notation_is_javas(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.0, "-0.0"), (0.1, "0.1"), (461826784.0, "4.61826784E8"), (-math.inf, "-Infinity")],
)
def test_notation_of_floats_is_javas(value: float, text: str) -> None:
    assert java_float(value) == text

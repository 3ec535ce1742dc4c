"""Doubles as Java prints them; the golden texts come from Java 17."""

import math
import struct
from pathlib import Path

import pytest

from ingestd.paimon.casts.java_double import java_double

GOLDEN = Path(__file__).parents[3] / "golden" / "java_doubles.txt"


def test_golden_doubles_have_the_digits_of_java() -> None:
    lines = [line.split() for line in GOLDEN.read_text().splitlines()]
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

"""The model of executors, and the plot of rates beside it."""

from xml.etree import ElementTree

import pytest

from bench.scaling import ScalingRun, plot, predicted_ratio

FIRST = ScalingRun(
    executors=2,
    records_per_second=1000,
    driver_us=1.0,
    executors_us=8.0,
    driver_use=0.2,
    executor_use=0.8,
)


@pytest.mark.parametrize(("executors", "ratio"), [(2, 1.0), (4, 5 / 3), (8, 5 / 2)])
def test_executors_divide_their_own_part_only(executors: int, ratio: float) -> None:
    assert predicted_ratio(FIRST, executors) == pytest.approx(ratio)


def test_measured_rates_and_the_model_are_plotted() -> None:
    texts = [element.text for element in ElementTree.fromstring(plot([FIRST])).iter()]
    assert {"measured", "model"} <= set(texts)

"""How the stages choose where they exchange blobs."""

from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.spark.stages import executors_serve_files

PORT = "spark.executorEnv.INGESTD_EXCHANGE_PORT"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({PORT: "0"}, True),
        ({PORT: ""}, False),
        ({}, False),
        ({PORT: "0", "spark.network.crypto.enabled": "true"}, False),
        ({PORT: "0", "spark.shuffle.service.enabled": "TRUE "}, False),
    ],
)
def test_settings_that_spark_found_elsewhere_decide_as_well(
    settings: dict[str, str], expected: bool
) -> None:
    """Spark's launcher adds the settings of SPARK_CONF_DIR to those of the configuration."""
    conf = SimpleNamespace(getAll=lambda: list(settings.items()))
    spark: Any = SimpleNamespace(master="spark://host:7077", getConf=lambda: conf)
    assert executors_serve_files.__wrapped__(spark) is expected

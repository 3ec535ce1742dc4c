"""Metrics of a comparison with the source, in a file for the node exporter's textfile collector."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from ingestd.errors import ConfigError

_KINDS = ("missing", "extra", "different", "moving", "kept")
_SUFFIX = ".prom"


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """A file of metrics, which each comparison of a pipeline replaces as a whole.

    Raises ConfigError if the textfile collector would not read a file of this name, or if no file
    can be created in its folder.
    """

    path: Path

    def __post_init__(self) -> None:
        folder = self.path.parent
        if self.path.suffix != _SUFFIX:
            raise ConfigError(
                f"--metrics-file {self.path}: the textfile collector reads files whose names end "
                f"with {_SUFFIX}"
            )
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(
                f"--metrics-file {self.path}: {folder} is not a folder in which files can be "
                "created; create it, or grant the right to write"
            )

    def write(
        self, pipeline: str, results: Iterable[Mapping[str, Any]], not_compared: int, now: float
    ) -> None:
        """Replace the file by the results of a comparison that ended at `now`, in Unix seconds.

        `results` has a document of `compare.report.result_document` for each compared table, and
        `not_compared` is the number of tables that were left out. Readers see the old or the new
        file, never a part. Raises OSError if the file cannot be written.
        """
        registry = CollectorRegistry()
        rows = Gauge(
            "ingestd_compare_rows",
            "Rows of the last comparison by kind: missing, extra, different, moving or kept.",
            ("pipeline", "table", "kind"),
            registry=registry,
        )
        for result in results:
            for kind in _KINDS:
                rows.labels(pipeline, result["table"], kind).set(result[kind])
        left_out = Gauge(
            "ingestd_compare_tables_not_compared",
            "Tables that the last comparison could not compare.",
            ("pipeline",),
            registry=registry,
        )
        left_out.labels(pipeline).set(not_compared)
        ended = Gauge(
            "ingestd_compare_last_timestamp_seconds",
            "When the last comparison ended.",
            ("pipeline",),
            registry=registry,
        )
        ended.labels(pipeline).set(now)
        write_to_textfile(str(self.path), registry)

"""Runs of a pipeline that end as a test tells them to, without Spark."""

import tempfile
import threading
from collections.abc import Sequence

from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.batch_events import BatchListener
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings


class Run:
    """A run of a pipeline that does what a test tells it to."""

    def __init__(
        self, outcome: IngestdError | None, listener: BatchListener, settings: PipelineSettings
    ) -> None:
        self.outcome = outcome
        self.settings = settings
        self.listener = listener
        self.stopped = threading.Event()
        self.until_latest = False

    def start(self, *, until_latest: bool) -> None:
        self.until_latest = until_latest
        if isinstance(self.outcome, ConfigError):
            raise self.outcome

    def await_termination(self, timeout: float) -> bool:
        if self.outcome is not None:
            raise self.outcome
        return self.until_latest or self.stopped.wait(min(timeout, 0.01))

    def is_idle(self) -> bool:
        return True

    def executors(self) -> int | None:
        return None

    def stop(self) -> None:
        self.stopped.set()


class Runs:
    """Makes runs, one for each outcome told."""

    def __init__(self, outcomes: Sequence[IngestdError | None]) -> None:
        self.outcomes = list(outcomes)
        self.made: list[Run] = []

    def __call__(self, settings: PipelineSettings, listener: BatchListener) -> Run:
        run = Run(self.outcomes[len(self.made)], listener, settings)
        self.made.append(run)
        return run


_WAREHOUSE = tempfile.TemporaryDirectory()


def settings(warehouse: str = _WAREHOUSE.name) -> PipelineSettings:
    """Those of a pipeline without sources."""
    return PipelineSettings(
        name="p",
        warehouse=warehouse,
        metastore="filesystem",
        database="db",
        sources={},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
        max_offsets_per_trigger={},
    )

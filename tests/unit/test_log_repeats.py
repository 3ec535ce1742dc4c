import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ingestd import log
from ingestd.log import JsonFormatter, SummingHandler, TextFormatter, bind, event_fields
from tests.support.clock import Clock


class Bench:
    """A logger of its own that writes JSON lines through the handler."""

    def __init__(self, formatter: logging.Formatter | None = None) -> None:
        self.stream, self.clock = io.StringIO(), Clock(100.0)
        self.handler = SummingHandler(self.stream, event_fields, window=60, clock=self.clock)
        self.handler.setFormatter(formatter or JsonFormatter())
        self.logger = logging.Logger("ingestd.bench")
        self.logger.addHandler(self.handler)

    def warn(self, event: str = "refused", **fields: object) -> None:
        self.logger.warning(event, extra={"ctx": fields})

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(log, "_process_fields", {})
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.INFO)
    one = Bench()
    yield one
    one.handler.close()
    root.setLevel(before)


def test_a_repeated_warning_is_written_once_and_then_as_a_sum(bench: Bench) -> None:
    for number in range(38):
        bench.warn(table="db.t", number=number)
    assert [line["number"] for line in bench.lines()] == [0]
    bench.clock.now += 60
    bench.handler.write_due()
    first, summed = bench.lines()
    assert "repeated" not in first
    assert (summed["event"], summed["repeated"], summed["within_seconds"]) == ("refused", 37, 60)
    assert (summed["table"], summed["number"], summed["level"]) == ("db.t", 37, "WARNING")


def test_the_answers_to_a_request_are_all_written(bench: Bench) -> None:
    for number in range(3):
        bench.logger.error("reload_refused", extra={**log.ANSWER, "ctx": {"number": number}})
    assert [line["number"] for line in bench.lines()] == [0, 1, 2]


def test_the_next_window_begins_with_a_line_in_full(bench: Bench) -> None:
    bench.warn(number=0)
    bench.warn(number=1)
    bench.clock.now += 61
    bench.warn(number=2)
    assert [(line["number"], line.get("repeated")) for line in bench.lines()] == [
        (0, None),
        (1, 1),
        (2, None),
    ]


def test_a_single_warning_is_not_reported_twice(bench: Bench) -> None:
    bench.warn()
    bench.clock.now += 61
    bench.handler.write_due()
    assert len(bench.lines()) == 1


def test_any_line_shows_what_is_due(bench: Bench) -> None:
    bench.warn()
    bench.warn()
    bench.clock.now += 61
    bench.logger.info("batch_finished")
    assert [line["event"] for line in bench.lines()] == ["refused", "refused", "batch_finished"]


@pytest.mark.parametrize(
    "name",
    ["table", "source", "topic", "partition", "offset", "stage", "reason", "error_type"],
)
def test_lines_that_differ_in_a_telling_field_are_not_one(bench: Bench, name: str) -> None:
    for value in ("a", "b", "a"):
        bench.warn(**{name: value})
    assert [line[name] for line in bench.lines()] == ["a", "b"]


def test_fields_bound_to_the_thread_distinguish_lines_and_are_kept(bench: Bench) -> None:
    for table in ("db.a", "db.b", "db.b"):
        with bind(table=table):
            bench.warn()
    bench.handler.close()
    assert [(line["table"], line.get("repeated")) for line in bench.lines()] == [
        ("db.a", None),
        ("db.b", None),
        ("db.b", 1),
    ]


def test_other_events_levels_and_loggers_are_not_one(bench: Bench) -> None:
    other = logging.Logger("ingestd.other")
    other.addHandler(bench.handler)
    bench.warn("a")
    bench.warn("b")
    bench.logger.error("a")
    other.warning("a")
    assert len(bench.lines()) == 4


@pytest.mark.parametrize("level", [logging.INFO, logging.CRITICAL])
def test_news_and_the_worst_are_always_written(bench: Bench, level: int) -> None:
    for _ in range(3):
        bench.logger.log(level, "batch_finished")
    assert len(bench.lines()) == 3


def test_at_debug_nothing_is_summed_up(bench: Bench) -> None:
    logging.getLogger().setLevel(logging.DEBUG)
    bench.warn()
    bench.warn()
    assert len(bench.lines()) == 2


def test_closing_shows_every_sum_once(bench: Bench) -> None:
    for event in ("a", "a", "b", "b", "b"):
        bench.warn(event)
    bench.handler.close()
    bench.handler.close()
    sums = {line["event"]: line["repeated"] for line in bench.lines() if "repeated" in line}
    assert sums == {"a": 1, "b": 2}
    assert len(bench.lines()) == 4


def test_a_sum_of_errors_has_the_newest_text_and_no_stack(bench: Bench) -> None:
    for number in range(3):
        try:
            raise OSError(f"no space for {number}")
        except OSError:
            bench.logger.exception("broke")
    bench.handler.close()
    first, summed = bench.lines()
    assert "stack" in first["error"]
    assert (summed["repeated"], summed["message"]) == (2, "no space for 2")
    assert "error" not in summed


def test_errors_of_different_types_are_not_one(bench: Bench) -> None:
    for error in (OSError("x"), ValueError("x"), OSError("y")):
        bench.logger.error("broke", exc_info=error)
    assert [line["error"]["type"] for line in bench.lines()] == ["OSError", "ValueError"]


def test_a_terminal_shows_the_count_before_the_fields(bench: Bench) -> None:
    on_terminal = Bench(TextFormatter())
    for _ in range(3):
        on_terminal.warn(table="db.t")
    on_terminal.clock.now += 30
    on_terminal.handler.close()
    lines = on_terminal.stream.getvalue().splitlines()
    assert lines[-1].endswith("WARNING refused repeated=2 within_seconds=30 table=db.t")


def test_without_another_line_a_sum_is_reported_by_the_clock(bench: Bench) -> None:
    told = threading.Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            if "repeated" in text:
                told.set()
            return super().write(text)

    handler = SummingHandler(Stream(), event_fields, window=0.05)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("ingestd.timer")
    logger.addHandler(handler)
    logger.warning("refused")
    logger.warning("refused")
    assert told.wait(120)
    handler.close()


def test_where_no_thread_can_be_started_the_next_line_reports_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Timer, "start", refuse)
    bench.warn()
    bench.warn()
    bench.clock.now += 60
    bench.logger.info("batch_finished")
    assert [line.get("repeated") for line in bench.lines()] == [None, 1, None]


def test_kinds_of_lines_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_KINDS", 2)
    for event in ("a", "a", "b", "c"):
        bench.warn(event)
    assert [(line["event"], line.get("repeated")) for line in bench.lines()] == [
        ("a", None),
        ("b", None),
        ("a", 1),
        ("c", None),
    ]


def test_python_warnings_differ_by_their_text(bench: Bench) -> None:
    warnings = logging.Logger("py.warnings")
    warnings.addHandler(bench.handler)
    for text in ("x.py:1: a", "x.py:2: b", "x.py:1: a"):
        warnings.warning("%s", text)
    assert [line["event"] for line in bench.lines()] == ["x.py:1: a", "x.py:2: b"]


@pytest.mark.parametrize("end", ["replace", "shutdown"])
def test_the_log_of_a_process_ends_with_its_sums(end: str) -> None:
    root = logging.getLogger()
    before: tuple[list[logging.Handler], int] = root.handlers[:], root.level
    stream = io.StringIO()
    try:
        log.configure_logging("info", "json", stream=stream)
        for _ in range(5):
            logging.getLogger("ingestd.x").warning("refused")
        finish: dict[str, Callable[[], None]] = {
            "replace": lambda: log.configure_logging("info", "json", stream=io.StringIO()),
            "shutdown": root.handlers[0].close,
        }
        finish[end]()
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        logging.captureWarnings(False)
    assert [json.loads(line).get("repeated") for line in stream.getvalue().splitlines()] == [
        None,
        4,
    ]


def test_a_process_that_just_ends_shows_its_sums() -> None:
    program = (
        "import logging, sys; from ingestd.log import configure_logging as configure;"
        "configure('info', 'json', stream=sys.stdout);"
        "[logging.getLogger('x').error('refused') for _ in range(5)]"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    counts = [json.loads(line).get("repeated") for line in done.stdout.splitlines()]
    assert (counts, done.stderr) == ([None, 4], "")

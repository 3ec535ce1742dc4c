"""What every test may ask for; the pieces live in ``tests/support``.

Fixtures import what they start: the tests of `ingestd-paimon` run where there is no Kafka client.
"""

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.workermanage import WorkerController

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ingestd.paimon.table.compact import rolling_write  # noqa: E402

if TYPE_CHECKING:
    from ingestd.dev.broker import DevBroker
    from tests.support.oracle import Oracle
    from tests.support.pypaimon import PyIceberg, Pypaimon

ONE_BROKER = pytest.StashKey[str]()

# In tests every compaction reads back what it has written.
rolling_write.CHECKS_EVERY_FILE = True

# Machines that run the tests are shared and slow: no test says anything about time. One commit
# has one verdict: examples are drawn again only in the long run, which looks for new ones.
settings.register_profile(
    "untimed",
    deadline=None,
    derandomize="INGESTD_LONG" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our own."""
    parser.addoption(
        "--matrix", action="store_true", help="write what readers say to docs/compatibility.json"
    )
    parser.addoption(
        "--one-broker", action="store_true", help="start one Kafka broker for all processes"
    )


def pytest_configure() -> None:
    """Let SIGINT interrupt, as it does on a terminal: a shell's background jobs ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Give a test process the address of the one broker, which runs until all have ended."""
    if not node.config.getoption("--one-broker"):
        return
    if ONE_BROKER not in node.config.stash:
        from tests.support.kafka_broker import running_broker

        running = ExitStack()
        node.config.stash[ONE_BROKER] = running.enter_context(running_broker()).bootstrap
        node.config.add_cleanup(running.close)
    node.workerinput["broker"] = node.config.stash[ONE_BROKER]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without the garbage collector, and let it ignore the tests and modules after that.

    A full collection visits every object, and ten thousand tests are some millions.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the files with processes of their own evenly among the others, of each the long first.

    The former wait and the latter compute, so that together they use the processors. Short files
    of the latter are left for the end, so that the processes that share the files out end at
    about the same time.
    """
    size = Counter(item.path for item in items)
    slow, chaos, integration = (
        {item.path for item in items if item.get_closest_marker(mark)}
        for mark in ("slow", "chaos", "integration")
    )
    waiting = slow | integration
    place: dict[Path, float] = {}
    for kind, until in ((True, 0.85), (False, 1.0)):
        files = [path for path in size if (path in waiting) is kind]
        files.sort(key=lambda path: (path not in slow, path not in chaos, -size[path]))
        place |= {path: until * number / len(files) for number, path in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


@pytest.fixture(scope="session")
def oracle() -> Iterator["Oracle"]:
    """Java Paimon, one JVM for the whole run."""
    from tests.support.oracle import Oracle

    with Oracle() as running:
        yield running


@pytest.fixture(scope="session")
def oracle_2() -> Iterator["Oracle"]:
    """Java Paimon 2.0, one JVM for the whole run."""
    from tests.support.java import PAIMON_2
    from tests.support.oracle import Oracle

    with Oracle(paimon=PAIMON_2) as running:
        yield running


@pytest.fixture(scope="session")
def pypaimon() -> Iterator["Pypaimon"]:
    """Python Paimon in an environment of its own, one process for the whole run."""
    from tests.support.pypaimon import Pypaimon

    with Pypaimon() as running:
        yield running


@pytest.fixture(scope="session")
def pyiceberg() -> Iterator["PyIceberg"]:
    """A reader of Iceberg tables in an environment of its own, one process for the whole run."""
    from tests.support.pypaimon import PyIceberg

    with PyIceberg() as running:
        yield running


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator["DevBroker"]:
    """A real Kafka broker, one for the whole run; topics are named so that tests don't meet."""
    from tests.support.kafka_broker import SharedBroker, running_broker

    shared = getattr(request.config, "workerinput", {}).get("broker")
    if shared:
        yield SharedBroker(shared)
        return
    with running_broker() as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: "DevBroker") -> str:
    """Address of the broker."""
    return broker.bootstrap

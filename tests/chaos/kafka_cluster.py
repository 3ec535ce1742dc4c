"""Three brokers that are one cluster: each is a controller, too."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ingestd.dev.broker import BrokerError, DevBroker, Member, free_ports, random_id

NUMBERS = (1, 2, 3)
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
}
_TRIES = 3


@dataclass(frozen=True)
class Cluster:
    """The brokers, all of which know all topics."""

    brokers: tuple[DevBroker, ...]

    @property
    def bootstrap(self) -> str:
        """The addresses of all."""
        return ",".join(broker.bootstrap for broker in self.brokers)


@contextmanager
def kafka_cluster() -> Iterator[Cluster]:
    """Three brokers for the block; what they keep is there three times, and two must agree."""
    with ExitStack() as stack:
        brokers = _started()
        for broker in brokers:
            stack.callback(broker.stop)
        yield Cluster(brokers)


def start_together(brokers: Sequence[DevBroker]) -> None:
    """Start brokers, each of which is only ready once there are enough of them."""
    with ThreadPoolExecutor(len(brokers)) as pool:
        list(pool.map(DevBroker.start, brokers))


def _started() -> tuple[DevBroker, ...]:
    for attempt in range(_TRIES):
        brokers = _made()
        try:
            start_together(brokers)
        except BrokerError:  # another process may have taken a port
            for broker in brokers:
                broker.stop()
            if attempt + 1 == _TRIES:
                raise
        else:
            return brokers
    raise AssertionError("not reached")


def _made() -> tuple[DevBroker, ...]:
    ports, cluster = free_ports(2 * len(NUMBERS)), random_id()
    controllers = dict(zip(NUMBERS, ports[len(NUMBERS) :], strict=True))
    members = (
        Member(cluster, number, (client, controllers[number]), controllers)
        for number, client in zip(NUMBERS, ports, strict=False)
    )
    return tuple(DevBroker(SETTINGS, member=member) for member in members)

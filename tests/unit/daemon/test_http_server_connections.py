"""Which connection gives way to a new one."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ingestd.daemon.http_server import ConnectionLimit


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def placed(stack: ExitStack, limit: ConnectionLimit, address: str) -> socket.socket:
    """The far end of a connection that was given a place."""
    ours, theirs = socket.socketpair()
    stack.enter_context(ours)
    stack.enter_context(theirs)
    stack.enter_context(limit.counted(ours, address))
    theirs.setblocking(False)
    return theirs


def is_open(far: socket.socket) -> bool:
    try:
        return far.recv(1) != b""
    except BlockingIOError:
        return True


def test_the_address_with_the_most_connections_loses_its_oldest(stack: ExitStack) -> None:
    limit = ConnectionLimit(4)
    probe = placed(stack, limit, "kubelet")
    many = [placed(stack, limit, "stranger") for _ in range(10)]
    assert is_open(probe)
    assert [is_open(one) for one in many] == [False] * 7 + [True] * 3


def test_of_one_address_the_newest_connection_is_kept(stack: ExitStack) -> None:
    limit = ConnectionLimit(2)
    many = [placed(stack, limit, "node") for _ in range(5)]
    assert [is_open(one) for one in many] == [False] * 3 + [True] * 2


def test_one_that_left_makes_room(stack: ExitStack) -> None:
    limit = ConnectionLimit(1)
    ours, theirs = socket.socketpair()
    stack.enter_context(ours)
    stack.enter_context(theirs)
    theirs.setblocking(False)
    with limit.counted(ours, "a"):
        pass
    placed(stack, limit, "a")
    assert is_open(theirs)

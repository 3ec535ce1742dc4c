"""Connections between pods that run as processes of one machine, and what network policies permit.

Pods have no network of their own, so the kernel does not know whose a connection is: it is that of
the process which holds its socket.
"""

import os
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.chart.pod_processes import PodProcesses

POD_NETWORK = "127.77."
"""How the addresses of pods begin."""

_ESTABLISHED, _LISTENING = "01", "0A"
_MAPPED = bytes(10) + b"\xff\xff"
Address = tuple[str, int]


class Connection(NamedTuple):
    """Labels of the pods at both ends, address and port; no labels for what is not in a pod."""

    client: tuple[tuple[str, str], ...]
    server: tuple[tuple[str, str], ...]
    address: str
    port: int


class _Socket(NamedTuple):
    local: Address
    remote: Address
    state: str
    inode: str


def connections(pods: Mapping[str, PodProcesses]) -> set[Connection]:
    """Connections that are open now from a pod to another one, or out of the cluster."""
    owners = {inode: name for name, pod in pods.items() for inode in _inodes(pod.pids())}
    sockets = list(_sockets())
    listening = {
        (owners.get(socket.inode), socket.local[1]) for socket in sockets if _listens(socket)
    }
    ends = {(socket.local, socket.remote): owners.get(socket.inode) for socket in sockets}
    labels = {
        name: tuple(sorted(pod.pod["metadata"]["labels"].items())) for name, pod in pods.items()
    }
    found = set()
    for one in sockets:
        client = owners.get(one.inode)
        called = (client, one.local[1]) not in listening
        if client is not None and one.state == _ESTABLISHED and called:
            server = ends.get((one.remote, one.local))
            dying = server is None and one.remote[0].startswith(POD_NETWORK)
            if server != client and not dying:
                end = labels[server] if server is not None else ()
                found.add(Connection(labels[client], end, *one.remote))
    return found


def permitted(
    connection: Connection, policies: list[dict[str, Any]], names: Mapping[str, int]
) -> bool:
    """Whether policies let it out of its client and into its server; `names` are those of ports."""
    client, server = dict(connection.client), dict(connection.server)
    out = _rules(policies, client, "egress")
    into = _rules(policies, server, "ingress") if server else None
    ways = ((out, "to", server), (into, "from", client))
    return all(
        rules is None or any(_fits(rule, key, peer, connection.port, names) for rule in rules)
        for rules, key, peer in ways
    )


def _rules(
    policies: list[dict[str, Any]], labels: Mapping[str, str], way: str
) -> list[dict[str, Any]] | None:
    """The rules that apply to a pod, of all policies that select it; None if no one does."""
    specs = [policy["spec"] for policy in policies]
    selecting = [
        spec
        for spec in specs
        if spec["podSelector"]["matchLabels"].items() <= labels.items()
        and way.capitalize() in spec["policyTypes"]
    ]
    return [rule for spec in selecting for rule in spec.get(way, [])] if selecting else None


def _fits(
    rule: Mapping[str, Any], key: str, peer: Mapping[str, str], port: int, names: Mapping[str, int]
) -> bool:
    ports = [names.get(port["port"], port["port"]) for port in rule.get("ports", [])]
    selectors = [one["podSelector"]["matchLabels"] for one in rule.get(key, [])]
    right_peer = not selectors or any(selector.items() <= peer.items() for selector in selectors)
    return right_peer and (not ports or port in ports)


def _listens(one: _Socket) -> bool:
    return one.state == _LISTENING


def _inodes(pids: set[int]) -> Iterator[str]:
    for pid in pids:
        try:
            links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        for link in links:
            match = re.fullmatch(r"socket:\[(\d+)\]", link)
            if match:
                yield match[1]


def _sockets() -> Iterator[_Socket]:
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            yield _Socket(_address(fields[1]), _address(fields[2]), fields[3], fields[9])


def _address(text: str) -> Address:
    """An address as the kernel prints it, in words; IPv4 within IPv6 is IPv4."""
    digits, _, port = text.partition(":")
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    packed = packed.removeprefix(_MAPPED)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, packed), int(port, 16)

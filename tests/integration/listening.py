"""Sockets that processes listen on, as Linux lists them."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

_LISTENS = "0A"
_ACCEPTS = 0x10000
"""Flag of a Unix socket that is listened on."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One listening socket; `address` is HOST:PORT, or the path of a Unix socket."""

    pid: int
    process: str
    kind: str
    address: str


def listening(pids: Iterable[int]) -> list[Listener]:
    """All listening TCP and Unix sockets of these processes; one that two share is listed twice."""
    found = []
    for pid in pids:
        with suppress(OSError):
            addresses = dict(_tcp(pid)) | dict(_unix(pid))
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inode = os.readlink(file).removeprefix("socket:[").removesuffix("]")
                    if inode in addresses:
                        found.append(Listener(pid, name, *addresses[inode]))
    return found


def _tcp(pid: int) -> Iterator[tuple[str, tuple[str, str]]]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS:
                host, port = fields[1].split(":")
                yield fields[9], ("tcp", f"{_host(host)}:{int(port, 16)}")


def _host(text: str) -> str:
    """An address that the kernel writes as words of four bytes in its own order."""
    raw = bytes.fromhex(text)
    words = [raw[start : start + 4][::-1] for start in range(0, len(raw), 4)]
    found = ip_address(b"".join(words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _unix(pid: int) -> Iterator[tuple[str, tuple[str, str]]]:
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if int(fields[3], 16) & _ACCEPTS:
            yield fields[6], ("unix", fields[7] if len(fields) > 7 else "")

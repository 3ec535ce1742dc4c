"""Encode and decode bitmaps of 64-bit numbers in the layout of Java's `Roaring64Bitmap`.

The upper 48 bits of the numbers are the keys of a radix tree, whose leaves refer to containers of
the lower 16 bits. The layout is not the portable one of other libraries. Numbers are little-endian,
except for the keys in leaves.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from ingestd.errors import FormatError

_TREE = struct.Struct("<bq")
_NODE = struct.Struct("<bhB")
_PLACE = struct.Struct("<q")
_ARRAY = struct.Struct("<bi")
_CONTAINER = struct.Struct("<bi")
_END = struct.Struct("<qii")
_KEY_BYTES = 6
_LEAF = 4
_NODES = ((4, 4), (16, 16), (48, 256), (256, 32))
"""Most children of each type of an inner node, and the bytes of its keys."""
_NOT_TRIMMED = -2
_RUNS, _BITS, _VALUES = 0, 1, 2
"""Types of containers."""
_BITS_BYTES, _MOST_VALUES = 8192, 4096
_PORTABLE, _PORTABLE_RUNS = 12346, 12347
"""Marks of a portable 32-bit bitmap without runs, and of one with runs and a single container."""


@dataclass(slots=True)
class Bitmap64:
    """A set of 64-bit numbers.

    `containers` has the lower 16 bits of the numbers by the upper 48 bits (big-endian), in the
    order in which they were added. `capacity` is the length of the array in which Java stores the
    containers.
    """

    containers: dict[bytes, BitMap] = field(default_factory=dict)
    capacity: int = 0

    def add(self, other: "Bitmap64") -> None:
        """Add the numbers of another bitmap to this one, in the order in which Java adds them."""
        for key in sorted(other.containers):
            if key in self.containers:
                self.containers[key] = self.containers[key] | other.containers[key]
                continue
            self.containers[key] = other.containers[key]
            if len(self.containers) > self.capacity:
                self.capacity = max(len(self.containers), self.capacity + self.capacity // 2)


def encode_roaring64(bitmap: Bitmap64) -> bytes:
    """Return the bytes that Java writes for a bitmap that was built in the same order."""
    places = {key: place for place, key in enumerate(bitmap.containers)}
    if not places:
        return b"\0"
    parts = [_TREE.pack(1, len(places)), *_encode_nodes(sorted(places), 0, places)]
    parts += [struct.pack("<i", 1), _ARRAY.pack(_NOT_TRIMMED, bitmap.capacity)]
    parts += map(_encode_container, bitmap.containers.values())
    parts.append(bytes(bitmap.capacity - len(places)))
    return b"".join([*parts, _END.pack(len(places), 0, len(places) - 1)])


def _encode_nodes(keys: Sequence[bytes], depth: int, places: dict[bytes, int]) -> Iterator[bytes]:
    """Yield the nodes of sorted keys with the same first `depth` bytes, parents first."""
    if len(keys) == 1:
        yield _NODE.pack(_LEAF, 0, 0) + keys[0] + _PLACE.pack(places[keys[0]])
        return
    end = next(i for i in range(depth, _KEY_BYTES) if keys[0][i] != keys[-1][i])
    groups = [list(own) for _, own in itertools.groupby(keys, key=lambda key: key[end])]
    kind = next(kind for kind, (most, _) in enumerate(_NODES) if len(groups) <= most)
    yield _NODE.pack(kind, len(groups), end - depth) + keys[0][depth:end]
    yield _encode_branches(kind, [own[0][end] for own in groups])
    for own in groups:
        yield from _encode_nodes(own, end + 1, places)


def _encode_branches(kind: int, branches: Sequence[int]) -> bytes:
    """Return the keys of an inner node's children: bytes in ascending order."""
    most, size = _NODES[kind]
    if most == 256:
        bits = np.zeros(256, np.bool_)
        bits[branches] = True
        return np.packbits(bits, bitorder="little").tobytes()
    cells = np.zeros(size, np.uint8)
    if most == 48:
        cells[:] = 0xFF
        cells[branches] = range(len(branches))
    else:
        cells[: len(branches)] = branches
    # Java holds them in big-endian words, and writes the words in little-endian.
    return cells.reshape(-1, min(size, 8))[:, ::-1].tobytes()


def _encode_container(numbers: BitMap) -> bytes:
    numbers.run_optimize()
    data: bytes = numbers.serialize()
    if data[:2] == struct.pack("<H", _PORTABLE_RUNS):
        kind, body = _RUNS, data[9:]
    else:
        kind, body = _VALUES if len(numbers) <= _MOST_VALUES else _BITS, data[16:]
    return b"\x01" + _CONTAINER.pack(kind, len(numbers)) + body


def decode_roaring64(data: bytes) -> Bitmap64:
    """Return the bitmap that Java wrote. Raises FormatError if the bytes are damaged."""
    try:
        return _decode(data)
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"the Roaring bitmap of 64 bits is damaged: {error}") from error


def _decode(data: bytes) -> Bitmap64:
    if data == b"\0":
        return Bitmap64()
    tag, count = _TREE.unpack_from(data)
    if tag != 1:
        raise ValueError(f"it begins with {tag}")
    leaves, at = _decode_leaves(data, _TREE.size)
    containers, capacity, at = _decode_containers(data, at)
    if len(leaves) != count or sorted(place for place, _ in leaves) != sorted(containers):
        raise ValueError("keys and containers do not match")
    if at + _END.size != len(data):
        raise ValueError(f"it has {len(data)} bytes, expected {at + _END.size}")
    by_key = {key: containers[place] for place, key in sorted(leaves)}
    if len(by_key) != count:
        raise ValueError("a key is there twice")
    return Bitmap64(by_key, capacity)


def _decode_leaves(data: bytes, at: int) -> tuple[list[tuple[int, bytes]], int]:
    """Return place and key of each leaf of the tree at `at`, and the end of the tree."""
    leaves, nodes = [], 1
    while nodes:
        kind, children, prefix = _NODE.unpack_from(data, at)
        at += _NODE.size + prefix
        nodes -= 1
        if kind == _LEAF:
            (place,) = _PLACE.unpack_from(data, at + _KEY_BYTES)
            leaves.append((place, data[at : at + _KEY_BYTES]))
            at += _KEY_BYTES + _PLACE.size
        elif 0 <= kind < _LEAF and 0 < children <= _NODES[kind][0]:
            nodes += children
            at += _NODES[kind][1]
        else:
            raise ValueError(f"a node has type {kind} and {children} children")
    return leaves, at


def _decode_containers(data: bytes, at: int) -> tuple[dict[int, BitMap], int, int]:
    """Return the containers at `at` by place, the length of their array, and their end."""
    (arrays,) = struct.unpack_from("<i", data, at)
    if arrays != 1:
        raise ValueError(f"it has {arrays} arrays of containers, expected 1")
    _, capacity = _ARRAY.unpack_from(data, at + 4)
    at += 4 + _ARRAY.size
    containers = {}
    for place in range(capacity):
        present = data[at]
        at += 1
        if present:
            kind, count = _CONTAINER.unpack_from(data, at)
            at += _CONTAINER.size
            containers[place], at = _decode_container(data, at, kind, count)
    return containers, capacity, at


def _decode_container(data: bytes, at: int, kind: int, count: int) -> tuple[BitMap, int]:
    if kind == _RUNS:
        (runs,) = struct.unpack_from("<H", data, at)
        end = at + 2 + 4 * runs
    else:
        end = at + (_BITS_BYTES if kind == _BITS else 2 * count)
    body = data[at:end]
    if kind not in (_RUNS, _BITS, _VALUES) or not 0 < count <= 1 << 16 or len(body) != end - at:
        raise ValueError(f"a container of type {kind} has {count} numbers in {len(body)} bytes")
    if kind == _RUNS:
        head = struct.pack("<HHBHH", _PORTABLE_RUNS, 0, 1, 0, count - 1)
        numbers = BitMap.deserialize(head + body)
        if numbers.serialize() != head + body:
            raise ValueError("the runs of a container contradict themselves")
    elif kind == _BITS:
        bits = np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")
        numbers = _bitmap(np.flatnonzero(bits))
    else:
        numbers = _bitmap(np.frombuffer(body, "<u2"))
    if len(numbers) != count:
        raise ValueError(f"a container has {len(numbers)} numbers, expected {count}")
    return numbers, end


def _bitmap(numbers: Iterable[int]) -> BitMap:
    return BitMap(np.asarray(numbers, np.uint32))

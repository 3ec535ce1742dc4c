"""The programs in Java: archives pinned and cached, sources compiled once."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ingestd.dev.jars import cache_folder, fetch, java_command, read_pins
from ingestd.dev.java_classes import compiled

PEERS = Path(__file__).parent / "peers"
SOURCES = {
    "flink": ("FlinkWriter", "Orders", "Events", "FirstRecord"),
    "action": ("ActionWriter", "Orders", "Events", "FirstRecord"),
    "java": (
        "JavaWriter",
        "ChangeReader",
        "RowParser",
        "Routed",
        "TableWriter",
        "DumpTable",
        "ReadTable",
        "CompactTable",
        "LookUpKeys",
        "Orders",
        "Events",
        "FirstRecord",
    ),
}
OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")


@cache
def classpath(world: str) -> str:
    """Class path of `flink`, `action` or `java`."""
    pins = pins_of(world)
    jars = fetch(list(pins), cache_folder() / "peers" / world, pins=pins)
    sources = [PEERS / "java" / f"{name}.java" for name in SOURCES[world]]
    classes = compiled(sources, jars, cache_folder() / "peers" / "classes")
    return ":".join(map(str, [classes, *jars]))


def pins_of(world: str) -> dict[str, str]:
    """The pinned archives of `flink`, `action` or `java`."""
    return read_pins(PEERS / f"{world}_jars.txt")


def command(
    world: str,
    main: str,
    arguments: Sequence[object],
    heap: str = "4g",
    more_flags: Sequence[str] = (),
) -> list[str]:
    """Command line of a program."""
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    flags = [f"-Xmx{heap}", *opened, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    java = [java_command(), *flags, *more_flags, "-cp", classpath(world)]
    return [*java, main, *map(str, arguments)]

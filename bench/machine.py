"""The machine that figures come from: hardware, versions, and how busy it is."""

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import confluent_kafka

import ingestd
from bench.floors import all_cores
from bench.java import pins_of
from bench.peer_runs import LOCK
from ingestd.dev.jars import java_command, read_pins

PACKAGES = ("pyspark", "pyarrow", "numpy", "msgspec", "confluent-kafka")
PEER_JARS = {
    "flink": ("flink-clients", "flink-connector-kafka", "paimon-flink-2.0"),
    "action": ("flink-clients", "flink-sql-connector-kafka", "paimon-flink-1.20"),
    "java": ("paimon-bundle", "kafka-clients", "jackson-databind"),
}
BROKER_PINS = Path(ingestd.__file__).parent / "dev" / "kafka_jars.txt"
_STROKES = 20_000


def description() -> dict[str, Any]:
    """Cores, memory, kernel and the versions of all that took part."""
    return {
        "processor": _first(r"model name\s*:\s*(.+)", "/proc/cpuinfo") or platform.machine(),
        "cores": all_cores(),
        "memory_mb": int(_first(r"MemTotal:\s+(\d+)", "/proc/meminfo") or 0) // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": _java_version(),
        "ingestd": importlib.metadata.version("ingestd"),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "librdkafka": str(confluent_kafka.libversion()[0]),
        "broker": _versions(read_pins(BROKER_PINS), ("kafka_2.13",)),
        "peers": {
            **{world: _versions(pins_of(world), names) for world, names in PEER_JARS.items()},
            "pypaimon": dict(
                re.findall(
                    r"^(pypaimon|pyarrow|orjson|confluent-kafka)==(\S+)",
                    LOCK.read_text(encoding="utf-8"),
                    re.MULTILINE,
                )
            ),
        },
    }


def load_average() -> float:
    """Runnable processes of the last minute."""
    return round(os.getloadavg()[0], 2)


def yardstick_ms() -> float:
    """CPU milliseconds of a fixed piece of work that has nothing to do with ingestd.

    Divided by it, absolute times of one machine can be compared with those of another.
    """
    begin = time.process_time()
    row = {"id": 1, "text": "a yard has three feet", "price": 1.25, "tags": ["a", "b"]}
    digest = hashlib.sha256()
    for number in range(_STROKES):
        row["id"] = number
        digest.update(json.dumps(json.loads(json.dumps(row))).encode())
    return round((time.process_time() - begin) * 1000, 2)


def _versions(pins: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    found = (coordinate.split(":") for coordinate in pins)
    return {artifact: version for _, artifact, version in found if artifact in names}


def _first(pattern: str, path: str) -> str | None:
    found = re.search(pattern, Path(path).read_text(encoding="utf-8"))
    return found[1].strip() if found else None


def _java_version() -> str:
    shown = subprocess.run(
        [java_command(), "-version"], capture_output=True, text=True, check=False
    ).stderr
    found = re.search(r'version "([^"]+)"', shown)
    return found[1] if found else shown.strip()

"""A made-up session of measurements, with figures that are easy to reckon with."""

from typing import Any

SPEED = {"ingestd": 400_000.0, "flink": 80_000.0, "java": 100_000.0, "pypaimon": 40_000.0}


def line(measure: str, subject: str, scale: str = "main", number: int = 0) -> dict[str, Any]:
    """One line of a log without figures."""
    place = {"measure": measure, "subject": subject, "scale": scale, "round": number}
    return {**place, "load_before": 1.0, "yardstick_ms": 100.0}


def run(measure: str, subject: str, scale: str, number: int, factor: float = 1.0) -> dict[str, Any]:
    """A run in which ingestd is five times Flink, four times the Java writer."""
    rate = SPEED[subject] * factor
    figures = {"events": 1_000_000, "per_s": rate, "per_s_total": rate / 2, "us_cpu": 4e6 / rate}
    memory = {"pss_mb": 800.0, "rss_mb": 1000.0, "first_snapshot_s": 1e6 / rate}
    place = line(measure, subject, scale, number)
    return {**place, **figures, **memory, "us_cpu_running": 1e6 / rate, "correct": True}


def session() -> list[dict[str, Any]]:
    """Two rounds of everything; the lookup changelog is refused, one run of the peer failed."""
    records = []
    for number, factor in enumerate((1.0, 1.1)):
        for subject in SPEED:
            records.append(run("ingest", subject, "main", number, factor))
        for subject in ("ingestd", "flink"):
            records.append(run("upsert", subject, "main", number))
            records.append(run("cold", subject, "small", number))
        records.append({**line("floors", "ingestd", "main", number), "per_s": 500_000.0})
        records.append(latency(number))
        small = {"cpu_ms_per_batch": 120.0 + number}
        records.append({**line("tiny", "ingestd", "main", number), **small})
    refused = {"not_built": "option 'changelog-producer' = 'lookup' is not supported"}
    records.append({**line("changelog-lookup", "ingestd"), **refused})
    records.append(
        {**line("ingest-fixed", "pypaimon"), "failed": "BenchError: it ended with 1:\nx"}
    )
    points = [point("events", 1_000, 10.0), point("events", 10_000, 50.0)]
    points += [point("files", 0, 10.0), point("files", 50_000, 12.0)]
    return [*records, {**line("growth", "ingestd"), "points": points}]


def latency(number: int) -> dict[str, Any]:
    """Latencies of a batch of a thousand records."""
    spans = {"batch_ms": {"p50": 200.0, "p99": 500.0}, "produce_to_readable_ms": {"p99": 900.0}}
    return {**line("latency", "ingestd", "main", number), **spans}


def point(dimension: str, size: int, milliseconds: float) -> dict[str, Any]:
    """What a batch costs at one size."""
    cost = {"cpu_ms_per_batch": milliseconds, "wall_ms_per_batch": milliseconds, "note": ""}
    return {"dimension": dimension, "size": size, **cost}

"""Signatures of requests beside those of both Javas, which also wrote tests/golden/dlf_signatures.

`python -m tests.compat.test_rest_dlf` writes that file again.
"""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dlf_requests import FIXED, GOLDEN, signed
from tests.support.java import PAIMON, PAIMON_2, compiled_classes, judge_command

pytestmark = pytest.mark.compat

SOURCES = Path(__file__).with_name("dlf_java")
TEXTS = ("a", "B c", "~*-._", "%41", "é", "a+b&c=d/e", "$branch_x", "", "日本")


def java_headers(requests: list[dict[str, Any]], paimon: str) -> list[dict[str, str]]:
    command = judge_command("DlfSigner", compiled_classes(SOURCES, paimon=paimon), paimon=paimon)
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(command, input=lines.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def random_requests(seed: int, count: int) -> Iterator[dict[str, Any]]:
    chosen = random.Random(seed)
    for number in range(count):
        names = chosen.sample(["warehouse", "pageToken", "maxResults", "tableNamePattern"], 3)
        yield {
            **FIXED[number % len(FIXED)],
            "parameters": {name: chosen.choice(TEXTS) for name in names},
            "body": chosen.choice([None, '{"name": "é"}']),
            "session_token": chosen.choice([None, "sts"]),
            "at": chosen.randrange(1 << 32),
        }


@pytest.mark.parametrize("paimon", [PAIMON, PAIMON_2])
def test_signatures_are_those_of_java(paimon: str) -> None:
    requests = [*FIXED, *random_requests(26, 60)]
    for request, theirs in zip(requests, java_headers(requests, paimon), strict=True):
        assert signed(request, theirs.get("x-acs-signature-nonce", "")) == theirs


def main() -> None:
    """Write the signatures of the fixed requests."""
    lines = [
        json.dumps({"paimon": paimon, "request": request, "headers": headers}, ensure_ascii=False)
        for paimon in (PAIMON, PAIMON_2)
        for request, headers in zip(FIXED, java_headers(FIXED, paimon), strict=True)
    ]
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Huge and deep messages for the decoders of formats, in a process with little to spend.

python -m tests.fuzz.bounded FORMAT ...

The kernel ends the process when it has used `CPU_SECONDS`, and refuses it memory beyond
`MEGABYTES`. Prints each format, and how many of its messages were judged.
"""

import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.fuzz.cases import Case, Message
from tests.fuzz.mutations import Literal, replaced
from tests.fuzz.seeds import seeds
from tests.fuzz.verdict import judge

CPU_SECONDS = 120
MEGABYTES = 2048
_MANY = 10_000
_HUGE: tuple[object, ...] = (
    *map(Literal, ("1e99999999", "1e-99999999", "-1E+999999999999", "9" * _MANY)),
    *map(Literal, ("0." + "1" * _MANY, "[" * _MANY, '{"a":' * _MANY, "[" * 900 + "]" * 900)),
    Literal("[" + "1," * _MANY + "1]"),
    Literal("{" + ",".join(f'"k{number}":{number}' for number in range(2000)) + "}"),
    Literal('{"scale":2147483647,"value":"AQ=="}'),
    Literal('{"scale":-2147483648,"value":"AQ=="}'),
    *("1e99999999", "1e-99999999", "9" * _MANY, "0." + "1" * _MANY, "1E999999999999999999"),
    *("x" * _MANY, "A" * _MANY, "2024-01-01T00:00:00." + "1" * _MANY + "Z", "9" * 30 + "-01-01"),
    *("9" * _MANY + ":00:00", "bin." + "9" * _MANY, "decimal(" + "9" * _MANY + ",2)"),
)
_BYTES = (
    b"\xff" * _MANY,
    b"\x80" * _MANY,
    b"\0" * _MANY,
    b"\xfe\xff\xff\xff\x0f" * 2000,
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" * 1000,
    b"\x02" * _MANY,
    b"\x0a\x7f" * _MANY,
)


def _huge(data_format: str) -> Iterator[Case]:
    found = seeds(data_format)
    for case in found[:1]:
        key, value = case.sound[0]
        for number, irregular in enumerate(_HUGE):
            made = replaced(value or b"", number * 7, irregular)
            if made is not None:
                yield _with(case, (key, made))
        for irregular in _BYTES:
            for kept in (5, 8):
                yield _with(case, (key, (value or b"")[:kept] + irregular))


def _with(case: Case, message: Message) -> Case:
    return replace(case, messages=(message,))


def main(formats: Sequence[str]) -> None:
    """Judge everything within the limits."""
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    for data_format in formats:
        count = 0
        for case in _huge(data_format):
            judge(case)
            count += 1
        sys.stdout.write(f"{data_format} {count}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

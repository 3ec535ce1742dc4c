"""How many examples a property test draws."""

import os

_TIMES = 10 if "INGESTD_LONG" in os.environ else 1


def examples(count: int) -> int:
    """As many in `make test`, ten times as many in the long form, which draws them again."""
    return count * _TIMES

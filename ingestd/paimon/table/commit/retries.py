"""How often, and for how long, one commit tries again.

Specification: https://paimon.apache.org/docs/1.4/concepts/concurrency-control/
"""

import random
import time

from ingestd.paimon.spec.options import CoreOptions

_JITTER = 0.2


class Retries:
    """The retries of one commit, whether others were faster or the storage gave no clear answer.

    There are `commit.max-retries` of them, and none after `commit.timeout`. Waits double between
    `commit.min-retry-wait` and `commit.max-retry-wait`, with jitter.
    """

    def __init__(self, options: CoreOptions) -> None:
        self._left = options.commit_max_retries
        self._next_ms = options.commit_min_retry_wait_ms
        self._longest_ms = options.commit_max_retry_wait_ms
        self._deadline = time.monotonic() + options.commit_timeout_ms / 1000

    def wait(self) -> bool:
        """Wait until the next retry is due; False, at once, if there is none."""
        wait_ms = min(self._next_ms, self._longest_ms)
        seconds = wait_ms * (1 + random.uniform(0, _JITTER)) / 1000  # noqa: S311  # no secret
        if self._left <= 0 or time.monotonic() + seconds > self._deadline:
            return False
        self._left -= 1
        self._next_ms *= 2
        time.sleep(seconds)
        return True

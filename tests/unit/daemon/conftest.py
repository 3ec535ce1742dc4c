"""A clock that goes when a test says so."""

import pytest

from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    """Seconds since 1970."""
    return Clock(1_700_000_000.0)

"""The extension that reads JSON into columns, if it is installed, and what it looks like.

This is the only place that knows whether it is there. Without it messages are decoded in Python,
with the same results.
"""

import importlib
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Protocol, cast

_LOG = logging.getLogger(__name__)
_NAME = "ingestd_native"
_FORMAT = 4
"""Version of what is exchanged with the extension: plans, columns, records of Kafka."""

Spec = tuple[Any, ...]
"""A node of a native plan; the extension's own documentation says which there are."""
Path = tuple[str, ...]
"""The names that lead to a field."""


class NativeColumn(Protocol):
    """A column of all texts, as buffers of Arrow; None where its form has no such buffer."""

    seen: int
    """Texts that had the field, null or not."""
    nulls: int
    validity: Any
    offsets: Any
    data: Any
    left_out: Any
    """Rows whose text is a placeholder, as unsigned 32-bit integers."""
    lacking: Any
    """Pairs of unsigned 32-bit integers: first of some rows without the field, and the row after
    them."""
    runs: list[tuple[int, bytes | None]] | None
    """First row and JSON text of each run of equal values."""


Columns = Mapping[Path, NativeColumn]


class NativePlan(Protocol):
    """Which fields of texts are wanted, and what every text must look like."""

    def read(self, texts: Sequence[bytes], prefix: bytes, suffix: bytes) -> Columns | None:
        """Columns of the texts between `prefix` and `suffix`; None if any text does not fit.

        The texts are a list, or what the extension itself has read.
        """
        ...


class NativeModule(Protocol):
    """The extension."""

    def Plan(self, spec: Spec) -> NativePlan:  # noqa: N802 - a class of the extension
        """A plan; ValueError if the specification is none."""
        ...


@cache
def native_module() -> NativeModule | None:
    """The extension, None if it is not installed or is of another version."""
    try:
        module = importlib.import_module(_NAME)
    except ImportError as error:
        _LOG.info("json_decoder", extra={"ctx": {"decoder": "python", "reason": str(error)}})
        return None
    if module.FORMAT != _FORMAT:
        fields = {"decoder": "python", "reason": f"{_NAME} is of another version"}
        _LOG.warning("json_decoder", extra={"ctx": fields})
        return None
    _LOG.info("json_decoder", extra={"ctx": {"decoder": "native"}})
    return cast("NativeModule", module)


def decoder_name() -> Literal["native", "python"]:
    """Which decoder is in use."""
    return "python" if native_module() is None else "native"

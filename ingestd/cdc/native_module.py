"""The interface of the native extension, which reads JSON into columns, if it is installed.

Only this module checks whether the extension is installed. Without it, messages are decoded in
Python, with the same results.
"""

import importlib
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Protocol, cast

from ingestd.cdc.columns.column_reader import Spec

_LOG = logging.getLogger(__name__)
_NAME = "ingestd_native"
_FORMAT = 4
"""Version of the interface to the extension: plans, columns, Kafka records."""

Path = tuple[str, ...]
"""The names of nested fields, the outermost first."""


class NativeColumn(Protocol):
    """A column of all texts as Arrow buffers; a buffer that the encoding lacks is None."""

    seen: int
    """Texts that had the field, null or not."""
    nulls: int
    validity: Any
    offsets: Any
    data: Any
    left_out: Any
    """Rows whose text is a placeholder for an omitted value, as unsigned 32-bit integers."""
    lacking: Any
    """Pairs of unsigned 32-bit integers: first of some rows without the field, and the row after
    them."""
    runs: list[tuple[int, bytes | None]] | None
    """The first row and the JSON text of each run of equal values."""


Columns = Mapping[Path, NativeColumn]


class NativePlan(Protocol):
    """A native plan: the fields to read, and the structure that every text must have."""

    def read(self, texts: Sequence[bytes], prefix: bytes, suffix: bytes) -> Columns | None:
        """Return the columns of texts between `prefix` and `suffix`; None if any text does not fit.

        The texts are a list, or a sequence of the extension's own Kafka reader.
        """
        ...


class NativeModule(Protocol):
    """The extension."""

    def Plan(self, spec: Spec) -> NativePlan:  # noqa: N802 - a class of the extension
        """Return a plan. Raises ValueError for an invalid specification."""
        ...


@cache
def native_module() -> NativeModule | None:
    """Return the extension; None if it is not installed or has another version."""
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
    """Return the name of the decoder in use."""
    return "python" if native_module() is None else "native"

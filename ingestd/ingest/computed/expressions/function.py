"""The definition of a function: its number of arguments, and its plan for argument types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.cells import Kernel
from ingestd.ingest.computed.expressions.nodes import Constant
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

TEXT = DataType("STRING")
BOOLEAN = DataType("BOOLEAN")
INT = DataType("INT")
BIGINT = DataType("BIGINT")
DOUBLE = DataType("DOUBLE")
DATE = DataType("DATE")
FLOATING_ROOTS = frozenset({"FLOAT", "DOUBLE"})
NUMBER_ROOTS = INTEGER_ROOTS | FLOATING_ROOTS | {"DECIMAL"}
TIME_ROOTS = TIMESTAMP_ROOTS | {"DATE"}


@dataclass(frozen=True, slots=True)
class Argument:
    """The properties of a function's argument that are known before evaluation.

    `type` is None for an untyped NULL, or if the type is unknown. `constant` is the value if
    `is_constant`.
    """

    type: DataType | None
    is_constant: bool = False
    constant: Constant = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How a function call is evaluated for its argument types.

    `type` is the result type, `takes` are the types to which the arguments are cast, and `kernel`
    computes the result. If `type` is None, the result is an untyped NULL, which is not evaluated.
    """

    type: DataType | None
    takes: tuple[DataType, ...]
    kernel: Kernel | None


Planner = Callable[[Sequence[Argument]], Plan]


@dataclass(frozen=True, slots=True)
class Function:
    """A function: `least` to `most` arguments (None: no maximum), and its planner.

    `plan` raises ConfigError if the function does not accept the argument types or constants.
    """

    least: int
    most: int | None
    plan: Planner


def argument_types_error(what: str, arguments: Sequence[Argument]) -> ConfigError:
    """Return the ConfigError for argument types that the function `what` does not accept."""
    names = ", ".join(
        "NULL" if argument.type is None else str(argument.type) for argument in arguments
    )
    return ConfigError(f"{what} does not take {names}; add a CAST")


def require(what: str, arguments: Sequence[Argument], roots: frozenset[str]) -> None:
    """Raise ConfigError unless the type of each argument of the function `what` is one of `roots`.

    `roots` are type names without parameters, such as DECIMAL. An argument without a type, such as
    NULL, is accepted.
    """
    if any(argument.type is not None and argument.type.root not in roots for argument in arguments):
        raise argument_types_error(what, arguments)


def constant_text(what: str, argument: Argument) -> str:
    """Return the value of a constant string. Raises ConfigError for any other argument.

    `what` describes the argument in the error message.
    """
    if not argument.is_constant or not isinstance(argument.constant, str):
        raise ConfigError(f"{what} must be a constant text")
    return argument.constant


def constant_number(what: str, argument: Argument, least: int, most: int) -> int:
    """Return the value of a constant integer from `least` to `most`, both included.

    Raises ConfigError for any other argument; `what` describes the argument in its message.
    """
    number = argument.constant
    plain = isinstance(number, int) and not isinstance(number, bool)
    if not argument.is_constant or not plain or not least <= int(number or 0) <= most:
        raise ConfigError(f"{what} must be a whole number from {least} to {most}")
    return int(number or 0)


def is_text(data_type: DataType | None) -> bool:
    """Return whether a type is CHAR, VARCHAR or STRING; False for None."""
    return data_type is not None and data_type.root in CHARACTER_ROOTS

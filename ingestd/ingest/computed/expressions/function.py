"""What a function of expressions is: how many arguments it takes, and its plan for their types."""

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
    """What is known of an argument before there are rows.

    `type` is None for NULL without a type; `constant` its value if `is_constant`.
    """

    type: DataType | None
    is_constant: bool = False
    constant: Constant = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The type of a result, the types that the arguments are cast to first, and the kernel.

    `type` None is a NULL without a type; then there is nothing to run.
    """

    type: DataType | None
    takes: tuple[DataType, ...]
    kernel: Kernel | None


Planner = Callable[[Sequence[Argument]], Plan]


@dataclass(frozen=True, slots=True)
class Function:
    """Least and most arguments (None: any number), and the plan for given ones.

    The planner raises ConfigError for types and constants that the function does not take.
    """

    least: int
    most: int | None
    plan: Planner


def refuse_types(what: str, arguments: Sequence[Argument]) -> ConfigError:
    """The error about types that do not go with one another, or with a function."""
    names = ", ".join("NULL" if one.type is None else str(one.type) for one in arguments)
    return ConfigError(f"{what} does not take {names}; say by CAST what is meant")


def require(what: str, arguments: Sequence[Argument], roots: frozenset[str]) -> None:
    """ConfigError unless all arguments are NULL or of certain types."""
    if any(one.type is not None and one.type.root not in roots for one in arguments):
        raise refuse_types(what, arguments)


def constant_text(what: str, argument: Argument) -> str:
    """The text that an argument must be; ConfigError if it is something else."""
    if not argument.is_constant or not isinstance(argument.constant, str):
        raise ConfigError(f"{what} must be a text that stands in the expression")
    return argument.constant


def constant_number(what: str, argument: Argument, least: int, most: int) -> int:
    """The whole number that an argument must be; ConfigError if it is something else."""
    number = argument.constant
    plain = isinstance(number, int) and not isinstance(number, bool)
    if not argument.is_constant or not plain or not least <= int(number or 0) <= most:
        raise ConfigError(f"{what} must be a whole number from {least} to {most}")
    return int(number or 0)


def is_text(data_type: DataType | None) -> bool:
    """Whether a type is one of texts."""
    return data_type is not None and data_type.root in CHARACTER_ROOTS

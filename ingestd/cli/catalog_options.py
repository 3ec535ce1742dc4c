"""The catalog options of every command with a WAREHOUSE argument.

They are not parameters of the commands' functions: `open_catalog` reads the chosen values.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer

from ingestd.errors import ConfigError

_PANEL = "Catalog"
_WAREHOUSE = "warehouse"


@dataclass(frozen=True, slots=True)
class CatalogChoice:
    """A metastore, such as `filesystem` or `hive`, and the options of its catalog.

    The options have Paimon's names.
    """

    metastore: str = "filesystem"
    options: Mapping[str, str] = field(default_factory=dict)


_CHOICE: ContextVar[CatalogChoice | None] = ContextVar("catalog", default=None)


def chosen_catalog() -> CatalogChoice:
    """Return the catalog that the command line selects, or the default: a `filesystem` catalog."""
    return _CHOICE.get() or CatalogChoice()


def add_catalog_options(command: Any) -> Any:  # noqa: ANN401  (typer keeps the type private)
    """Add the catalog options to a command with a WAREHOUSE argument, and return the command.

    The subcommands of a group are changed likewise.
    """
    for subcommand in getattr(command, "commands", {}).values():
        add_catalog_options(subcommand)
    if any(_is_warehouse(param) for param in command.params):
        command.params += _parameters()
    return command


def _is_warehouse(param: Any) -> bool:  # noqa: ANN401
    """Return whether a parameter is the argument WAREHOUSE; the option of `init` is none."""
    return bool(param.name == _WAREHOUSE and param.param_type_name == "argument")


def _set_metastore(value: str | None) -> None:
    # Called before the other options on every command line, given or not: it resets the choice.
    _CHOICE.set(CatalogChoice() if value is None else CatalogChoice(value))


def _set_uri(value: str | None) -> None:
    if value is not None:
        _add({"uri": value})


def _set_options(values: list[str] | None) -> None:
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--catalog-option '{text}': write NAME=VALUE")
        _add({name.strip(): value})


def _add(options: Mapping[str, str]) -> None:
    chosen = chosen_catalog()
    _CHOICE.set(replace(chosen, options={**chosen.options, **options}))


def _parameters() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_options)
    parameters = [param for param in typer.main.get_command(app).params if param.name in _NAMES]
    for parameter in parameters:
        parameter.expose_value = False
    # Given options are processed in the order of the command line, but an eager one comes first.
    parameters[0].is_eager = True
    return parameters


_NAMES = ("metastore", "uri", "catalog_option")


def _options(
    metastore: Annotated[
        str | None,
        typer.Option(
            help="Kind of catalog: filesystem (default), hive, jdbc or rest.",
            callback=_set_metastore,
            rich_help_panel=_PANEL,
        ),
    ] = None,
    uri: Annotated[
        str | None,
        typer.Option(
            help="URL of the catalog server, of the metastore (thrift://...), or of the catalog's "
            "database (jdbc:...).",
            callback=_set_uri,
            rich_help_panel=_PANEL,
        ),
    ] = None,
    catalog_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Catalog option by its Paimon name; repeatable.",
            callback=_set_options,
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None:
    """Declare the catalog options as parameters; never called."""
